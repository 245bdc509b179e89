"""The manifest folder on a real file system: what is reported and when, and what is not."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chronolet.adapters.manifest_files import watched_folder
from chronolet.adapters.manifest_files.watched_folder import ManifestFolder, NoFolder
from chronolet.ports.pods.manifests import FolderNews
from tests.support.scratch import HANG_SECONDS, wait_until


class Watch:
    """Follows a folder on a separate thread."""

    def __init__(self, path: Path, rescan_seconds: float, tick_seconds: float) -> None:
        self.news: list[FolderNews] = []
        self._stop = threading.Event()
        self._folder = ManifestFolder(path, rescan_seconds, tick_seconds=tick_seconds)
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def _follow(self) -> None:
        for one in self._folder.follow(self._stop):
            self.news.append(one)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(HANG_SECONDS)
        assert not self._thread.is_alive()

    def contents(self, name: str) -> list[bytes]:
        """Return the reported contents of this file."""
        return [file.content for one in list(self.news) for file in one.changed if file.name == name]

    def names(self) -> set[str]:
        return {file.name for one in list(self.news) for file in one.changed}

    def gone(self) -> list[str]:
        return [Path(path).name for one in list(self.news) for path in one.gone]

    def errors(self) -> list[str]:
        return [one.error for one in list(self.news) if one.error]

    def began(self) -> None:
        wait_until(lambda: bool(self.news), "the first scan")


Watching = Callable[..., Watch]


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    """Return a function that watches `tmp_path / "m"` or another path. By default, rescans are an hour apart,
    so that only notifications matter.
    """
    (tmp_path / "m").mkdir()
    started: list[Watch] = []

    def start(path: Path | None = None, rescan_seconds: float = 3600, tick_seconds: float = 0.02) -> Watch:
        started.append(Watch(path or tmp_path / "m", rescan_seconds, tick_seconds))
        started[-1].began()
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def folder(tmp_path: Path, watching: Watching) -> Path:
    return tmp_path / "m"


def put(folder: Path, name: str, content: bytes) -> None:
    """Write a file elsewhere and rename it into place, as a careful program does."""
    stage = folder.parent / f"stage-{name}"
    stage.write_bytes(content)
    stage.rename(folder / name)


def test_the_first_news_is_complete(folder: Path, watching: Watching) -> None:
    for name in ("b.yaml", "a.yml", "c.json", "d.kyaml"):
        (folder / name).write_bytes(name.encode())
    first = watching().news[0]
    assert [(file.name, file.content) for file in first.changed] == [
        (name, name.encode()) for name in ("a.yml", "b.yaml", "c.json", "d.kyaml")
    ]
    assert first.files == tuple(str(folder / name) for name in ("a.yml", "b.yaml", "c.json", "d.kyaml"))
    assert (first.complete, first.error) == (True, "")


def test_an_empty_folder_is_reported(watching: Watching) -> None:
    assert watching().news == [FolderNews(complete=True)]


def test_a_file_renamed_into_place_is_reported_alone(folder: Path, watching: Watching) -> None:
    watch = watching()
    for number in range(20):
        put(folder, f"{number}.yaml", b"x")
        wait_until(lambda n=number: watch.contents(f"{n}.yaml") == [b"x"], "the file")
    assert [sum(_names(one, number) for one in watch.news) for number in range(20)] == [1] * 20
    assert not any(one.complete for one in watch.news[1:])


def _names(news: FolderNews, number: int) -> bool:
    return any(file.name == f"{number}.yaml" for file in news.changed)


def vanishing(monkeypatch: pytest.MonkeyPatch, remove: Callable[[Path], None]) -> None:
    """Make files named `gone*` disappear after the scan, but before they are opened."""
    read = watched_folder._content

    def gone(path: Path) -> bytes:
        if path.name.startswith("gone"):
            remove(path)
        return read(path)

    monkeypatch.setattr(watched_folder, "_content", gone)


def test_a_file_that_disappears_before_it_is_read_counts_as_removed(
    folder: Path, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, "gone-1.yaml", b"x")
    watch = watching()
    vanishing(monkeypatch, lambda path: path.unlink(missing_ok=True))
    put(folder, "gone-1.yaml", b"y")
    put(folder, "gone-2.yaml", b"y")
    put(folder, "stays.yaml", b"z")
    wait_until(lambda: watch.contents("stays.yaml") == [b"z"] and watch.gone() != [], "the other file and the removal")
    assert watch.gone() == ["gone-1.yaml"], "a file that was never reported is not reported as gone"
    assert not [file for one in watch.news for file in one.changed if file.error]


def test_a_file_that_was_never_reported_is_not_reported_as_gone(folder: Path, watching: Watching) -> None:
    watch = watching(tick_seconds=3600)
    brief = folder / "brief.yaml"
    brief.write_bytes(b"half")  # written in place, and therefore postponed for a tick
    put(folder, "first.yaml", b"x")
    wait_until(lambda: watch.contents("first.yaml") == [b"x"], "a scan that found it")
    brief.unlink()
    put(folder, "second.yaml", b"x")
    wait_until(lambda: watch.contents("second.yaml") == [b"x"], "a scan that did not")
    (folder / "first.yaml").unlink()
    wait_until(lambda: watch.gone() != [], "the removal of the other")
    assert (watch.gone(), watch.contents("brief.yaml")) == (["first.yaml"], [])


def test_a_folder_that_disappears_while_it_is_read_removes_nothing(
    folder: Path, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, "gone.yaml", b"x")
    watch = watching()
    vanishing(monkeypatch, lambda path: shutil.rmtree(path.parent))
    put(folder, "gone.yaml", b"y")
    wait_until(lambda: watch.errors() != [], "the error")
    assert watch.gone() == []


def test_a_file_written_in_place_is_reported_when_it_is_closed(folder: Path, watching: Watching) -> None:
    watch = watching()
    with (folder / "web.yaml").open("wb") as file:
        file.write(b"half ")
        file.flush()
        put(folder, "other.yaml", b"x")  # causes a scan while the first file is half-written
        wait_until(lambda: watch.contents("other.yaml") == [b"x"], "the other file")
        file.write(b"whole")
    wait_until(lambda: watch.contents("web.yaml")[-1:] == [b"half whole"], "the whole file")


def test_a_file_is_not_read_in_the_tick_in_which_it_is_written(folder: Path, watching: Watching) -> None:
    watch = watching(tick_seconds=3600)
    with (folder / "web.yaml").open("wb") as file:
        file.write(b"half ")
        file.flush()
        for number in range(3):
            put(folder, f"{number}.yaml", b"x")  # moved in, and therefore complete
            wait_until(lambda n=number: watch.contents(f"{n}.yaml") == [b"x"], "another file")
        file.write(b"whole")
        file.flush()
        os.utime(file.fileno(), (0, 0))  # now the last write seems older than a tick
    wait_until(lambda: bool(watch.contents("web.yaml")), "the whole file")
    assert watch.contents("web.yaml") == [b"half whole"]


def test_a_file_written_in_place_is_reported_a_tick_later(folder: Path, watching: Watching) -> None:
    watch = watching()
    for number in range(5):
        (folder / "web.yaml").write_bytes(b"%d" % number)
        wait_until(lambda n=number: watch.contents("web.yaml")[-1:] == [b"%d" % n], "the file")


def test_changes_and_removals_are_reported(folder: Path, watching: Watching) -> None:
    put(folder, "web.yaml", b"1")
    watch = watching()
    put(folder, "web.yaml", b"2")
    wait_until(lambda: watch.contents("web.yaml") == [b"1", b"2"], "the second content")
    (folder / "web.yaml").rename(folder / "web.yaml.off")
    wait_until(lambda: watch.gone() == ["web.yaml"], "the removal")
    (folder / "web.yaml.off").rename(folder / "web.yaml")
    wait_until(lambda: len(watch.news[-1].changed) == 1, "the return")
    (folder / "web.yaml").unlink()
    wait_until(lambda: watch.gone() == ["web.yaml", "web.yaml"], "the second removal")


def test_changes_of_equal_size_within_a_tick_are_noticed(folder: Path, watching: Watching) -> None:
    watch = watching()
    path = folder / "web.yaml"
    path.write_bytes(b"?")
    for number in range(200):
        path.write_bytes(b"%03d" % number)
    wait_until(lambda: watch.contents("web.yaml")[-1:] == [b"199"], "the last content")


def test_an_entry_that_cannot_be_inspected_does_not_affect_others(folder: Path, watching: Watching) -> None:
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "web.yaml").write_bytes(b"fine")
    watch = watching()
    assert (watch.contents("web.yaml"), watch.errors()) == ([b"fine"], [])
    (refused,) = (file for file in watch.news[0].changed if file.name == "loop.yaml")
    assert refused.error == "Too many levels of symbolic links"
    (folder / "loop.yaml").unlink()
    wait_until(lambda: watch.gone() == ["loop.yaml"], "the link's end")


def test_links_are_followed(folder: Path, watching: Watching) -> None:
    target = folder.parent / "target"
    target.write_bytes(b"linked")
    watch = watching()
    (folder / "soft.yaml").symlink_to(target)
    os.link(target, folder / "hard.yaml")
    (folder / "nowhere.yaml").symlink_to(folder.parent / "missing")
    wait_until(lambda: watch.contents("soft.yaml") == watch.contents("hard.yaml") == [b"linked"], "both links")
    assert "nowhere.yaml" not in watch.names()


def test_other_files_than_manifests_are_not_read(folder: Path, watching: Watching) -> None:
    for name in (".hidden.yaml", "web.yaml~", "#web.yaml#", ".web.yaml.swp", "4913", "README", "web.yaml.tmp", "yaml"):
        (folder / name).write_bytes(b"x")
    (folder / "sub.yaml").mkdir()
    (folder / "sub.yaml" / "inner.yaml").write_bytes(b"x")
    watch = watching()
    put(folder, ".late.yaml", b"x")
    put(folder, "web.yaml", b"x")
    wait_until(lambda: bool(watch.names()), "the manifest")
    assert watch.names() == {"web.yaml"}


def test_a_pipe_does_not_block_the_watch(folder: Path, watching: Watching) -> None:
    os.mkfifo(folder / "pipe.yaml")
    watch = watching()
    assert [(file.name, file.error) for file in watch.news[0].changed] == [
        ("pipe.yaml", "pipe.yaml is not a regular file")
    ]


def test_a_name_that_is_not_utf8_is_escaped(folder: Path, watching: Watching) -> None:
    (Path(os.fsdecode(os.fsencode(folder) + b"/\xff.yaml"))).write_bytes(b"x")
    reported = watching().news[0].changed[0]
    assert (reported.name, reported.content) == ("\\udcff.yaml", b"x")
    reported.path.encode()


def test_a_rescan_finds_changes_without_a_notification(folder: Path, watching: Watching) -> None:
    target = folder.parent / "target"
    target.write_bytes(b"1")
    (folder / "web.yaml").symlink_to(target)
    watch = watching(rescan_seconds=0.05)
    # The change is in another folder, so there is no notification. It is a single write, so that no scan finds the file
    # empty.
    with target.open("r+b") as file:
        file.write(b"22")
    wait_until(lambda: watch.contents("web.yaml") == [b"1", b"22"], "the second content")


def test_a_missing_folder_is_reported_once_and_read_once_it_exists(tmp_path: Path, watching: Watching) -> None:
    late = tmp_path / "late"
    watch = watching(late)
    assert watch.errors() == ["No such file or directory"]
    stage = tmp_path / "stage"
    stage.mkdir()
    (stage / "web.yaml").write_bytes(b"x")
    stage.rename(late)
    wait_until(lambda: watch.contents("web.yaml") == [b"x"], "the folder")
    assert watch.news[-1].complete
    assert watch.errors() == ["No such file or directory"]
    put(late, "more.yaml", b"y")
    wait_until(lambda: watch.contents("more.yaml") == [b"y"], "a notification from the new folder")


def test_a_replaced_folder_is_still_watched(folder: Path, watching: Watching) -> None:
    put(folder, "old.yaml", b"1")
    watch = watching()
    folder.rename(folder.parent / "before")
    wait_until(lambda: bool(watch.errors()), "the missing folder")
    folder.mkdir()
    wait_until(lambda: watch.news[-1].complete, "the empty folder")
    assert watch.news[-1].files == ()
    put(folder, "new.yaml", b"2")
    wait_until(lambda: watch.contents("new.yaml") == [b"2"], "the file in the new folder")


def test_a_recreated_folder_is_read_again(folder: Path, watching: Watching) -> None:
    put(folder, "web.yaml", b"1")
    watch = watching()
    shutil.rmtree(folder)
    wait_until(lambda: bool(watch.errors()), "the missing folder")
    folder.mkdir()
    put(folder, "web.yaml", b"2")
    wait_until(lambda: watch.contents("web.yaml") == [b"1", b"2"], "the file")


def test_a_single_file_can_be_watched(folder: Path, watching: Watching) -> None:
    put(folder, "web.conf", b"1")
    put(folder, "other.yaml", b"x")
    watch = watching(folder / "web.conf")
    assert watch.news[0].files == (str(folder / "web.conf"),)
    put(folder, "web.conf", b"2")
    wait_until(lambda: watch.contents("web.conf") == [b"1", b"2"], "the second content")
    assert watch.names() == {"web.conf"}


def test_without_a_folder_there_is_nothing() -> None:
    stop = threading.Event()
    news = NoFolder().follow(stop)
    assert next(news) == FolderNews(complete=True)
    stop.set()
    assert list(news) == []
