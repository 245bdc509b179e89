"""The folders of pods' logs: listings, links and removals; nothing outside the folders is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronolet.adapters.state_folder.pod_logs import PodLogFolders
from chronolet.ports.pods.pod_logs import ContainerLog, LogLink, PodLogsRefusal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pods = tmp_path / "pods"
    (pods / "default_web_u1" / "app").mkdir(parents=True)
    (pods / "default_web_u1" / "app" / "0.log").write_text("x")
    (pods / "a_file").write_text("x")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").write_text("x")
    (pods / "a_link").symlink_to(tmp_path / "elsewhere")
    links = tmp_path / "containers"
    links.mkdir()
    (links / "web_default_app-k1.log").symlink_to(pods / "default_web_u1" / "app" / "0.log")
    (links / "web_default_app-k0.log").symlink_to(pods / "default_web_u1" / "app" / "gone.log")
    (links / "odd").symlink_to("/no/such/file")
    (links / "a_file.log").write_text("x")
    return pods


def test_folders_and_links_are_listed(folder: Path) -> None:
    logs = PodLogFolders(folder)
    (found,) = logs.folders()
    assert found.name == "default_web_u1"
    assert found.changed_at == (folder / "default_web_u1").stat().st_mtime_ns // 1_000_000
    assert logs.links() == [
        LogLink(name="odd", container_id="", target_exists=False),
        LogLink(name="web_default_app-k0.log", container_id="k0", target_exists=False),
        LogLink(name="web_default_app-k1.log", container_id="k1", target_exists=True),
    ]


def test_a_missing_folder_is_empty(tmp_path: Path) -> None:
    logs = PodLogFolders(tmp_path / "none" / "pods")
    assert (logs.folders(), logs.links()) == ([], [])
    logs.remove_folder("default_web_u1")
    logs.remove_link("x.log")


def test_a_folder_is_removed_with_its_content(folder: Path) -> None:
    PodLogFolders(folder).remove_folder("default_web_u1")
    assert sorted(one.name for one in folder.iterdir()) == ["a_file", "a_link"]


def test_only_dangling_links_are_removed(folder: Path) -> None:
    logs, links = PodLogFolders(folder), folder.parent / "containers"
    for name in ("odd", "web_default_app-k0.log", "web_default_app-k1.log", "a_file.log"):
        logs.remove_link(name)
    assert sorted(one.name for one in links.iterdir()) == ["a_file.log", "web_default_app-k1.log"]


APP = ContainerLog(pod="default/web", uid="u1", container="app", id="k7")


def test_the_log_of_a_container_is_linked_under_its_name(folder: Path) -> None:
    logs, links = PodLogFolders(folder), folder.parent / "containers"
    output = folder.parent / "elsewhere" / "kept"
    for _ in range(2):
        logs.link(APP, 3, str(output))
    inner, outer = folder / "default_web_u1" / "app" / "3.log", links / "web_default_app-k7.log"
    assert (inner.readlink(), outer.readlink()) == (output, inner)
    assert logs.links()[-1] == LogLink(name="web_default_app-k7.log", container_id="k7", target_exists=True)
    logs.link(APP, 3, "/another/place")
    assert str(inner.readlink()) == "/another/place"
    for _ in range(2):
        logs.unlink(APP)
    assert not inner.is_symlink()
    assert not outer.is_symlink()
    assert output.exists()


def test_a_long_name_is_truncated(folder: Path) -> None:
    logs = PodLogFolders(folder)
    long = ContainerLog(pod="default/" + "w" * 150, uid="u", container="a" * 63, id="k" * 64)
    logs.link(long, 0, "/x")
    assert any(len(one.name) == 255 and one.name.endswith("k.log") for one in logs.links())
    logs.unlink(long)
    assert not any(one.name.startswith("www") for one in logs.links())


def test_links_neither_replace_files_nor_are_followed(folder: Path) -> None:
    logs, links = PodLogFolders(folder), folder.parent / "containers"
    with pytest.raises(PodLogsRefusal, match=r"0\.log: File exists"):
        logs.link(APP, 0, "/x")
    with pytest.raises(PodLogsRefusal, match="expected a name in"):
        logs.link(ContainerLog(pod="../web", uid="x/../y", container="app", id="k"), 0, "/x")
    (links / "web_default_app-k7.log").symlink_to(folder / "a_link")
    logs.unlink(APP)
    assert (folder / "a_link").is_symlink()
    assert not (links / "web_default_app-k7.log").is_symlink()


def test_nothing_else_is_touched(folder: Path) -> None:
    logs = PodLogFolders(folder)
    logs.remove_folder("a_link")
    assert (folder.parent / "elsewhere" / "kept").exists()
    for name in ("../elsewhere", "..", ".", "", "default_web_u1/app"):
        with pytest.raises(PodLogsRefusal, match="expected a name in"):
            logs.remove_folder(name)
        with pytest.raises(PodLogsRefusal, match="expected a name in"):
            logs.remove_link(name)


def test_unreadable_or_unremovable_entries_are_named(folder: Path) -> None:
    logs = PodLogFolders(folder / "a_file")
    with pytest.raises(PodLogsRefusal, match="a_file: Not a directory"):
        logs.folders()
    with pytest.raises(PodLogsRefusal, match="a_file: Not a directory"):
        PodLogFolders(folder).remove_folder("a_file")
