"""`chronolet replay --html`: the page's data is what the commands print, and its errors are one line."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chronolet_schemas import image_gc, pod
from chronolet_schemas.envelope import Position, Record
from tests.cli.support.busy_node import ADDED, IMAGES, LIVENESS, busy, failed_probe, image
from tests.cli.support.histories import SECOND, UID
from tests.cli.support.written_node import NOON, WrittenNode, columns
from tests.support.page_parts import parts, rows


@pytest.fixture
def node() -> WrittenNode:
    return busy()


def data(node: WrittenNode, folder: Path, *words: str) -> dict[str, Any]:
    file = folder / "page.html"
    result = node.run("replay", "--html", str(file), *words)
    assert (result.status, result.errors) == (0, ""), result
    assert result.output.startswith(f"{file}: ")
    return parts(file.read_text(encoding="utf-8"))


def test_the_entries_are_those_of_the_log(node: WrittenNode, tmp_path: Path) -> None:
    """With their causes: entries, and ids of requests."""
    caused = pod.PodEnded(pod="data/db", uid=UID)
    first = node.write("pod/data/db", caused, cause=f"request-{'a' * 64}")
    node.write("pod/data/db", caused, cause=str(first))
    node.write("pod/data/db", caused, cause="with \x1b control")
    found = data(node, tmp_path)
    lines = node.run("log").output.splitlines()
    assert found["summary"]["entries"] == len(lines) > 40
    words = {
        field: [found[f"entry.{field}.words"][one] for one in found[f"entry.{field}"]]
        for field in ("type", "entity", "subject", "origin")
    }
    for at, line in enumerate(lines):
        number = int(sum(found["entry.number"][: at + 1]))
        distance = int(found["entry.cause"][at])
        cause = f"#{number - distance}" if distance else words["origin"][at]
        subject = words["subject"][at]
        what = [
            f"#{number}",
            words["entity"][at],
            words["type"][at].removesuffix("@1"),
            *([subject] if subject else []),
        ]
        fields = found["text.0"][at].removeprefix(subject).lstrip()
        shown = " ".join([*what, *([f"<-{cause}"] if cause else []), fields])
        assert line.partition(" ")[2] == shown.rstrip()
    assert words["origin"][-3:] == ["request-aaaaaaaaaaaa", "", "with \\x1b control"]


def test_of_the_output_of_a_probe_the_beginning_is_shown(node: WrittenNode, tmp_path: Path) -> None:
    failed = failed_probe(3, node.now)
    for output in ("o" * 200, "o" * 10_000):
        node.write(LIVENESS, ADDED, msgspec.structs.replace(failed, output=output))
        found = data(node, tmp_path)
        [row] = rows(found, "probe", found["summary"]["entries"]).values()
        assert row[-1] == ["o" * 200 + ("..." if len(output) > 200 else "")]


def test_each_pod_has_the_cells_that_get_prints(node: WrittenNode, tmp_path: Path) -> None:
    found = data(node, tmp_path)
    numbers = range(1, found["summary"]["entries"] + 1)
    shown = 0
    for n in numbers:
        printed = columns(node.run("get", "pods", "-A", "-o", "wide", "--no-headers", "--at", f"#{n}").output)
        of_page = rows(found, "pod", n)
        assert [f"{row[0]}/{row[1]}" for row in printed] == sorted(of_page)
        for row in printed:
            cells = of_page[f"{row[0]}/{row[1]}"]
            # An age is a number between two texts: the time from which on it counts.
            assert [cell[0] for cell in cells if len(cell) == 1] == [
                text for cell, text in zip(cells, row, strict=True) if len(cell) == 1
            ]
        shown += len(printed)
    assert shown > 60


def test_entries_belong_to_the_objects_that_they_are_about(node: WrittenNode, tmp_path: Path) -> None:
    found = data(node, tmp_path)
    tables = [one["name"] for one in found["summary"]["tables"]]
    about: dict[str, set[str]] = {}
    for type_, table, number in zip(found["entry.type"], found["entry.table"], found["entry.object"], strict=True):
        name = f"{tables[table]} {found[f'{tables[table]}.objects'][number]}"
        about.setdefault(found["entry.type.words"][type_].removesuffix("@1"), set()).add(name)
    assert about["pod.ContainerExited"] == {"container default/web/app", "container default/web/side"}
    assert about["pod.SandboxStarted"] == {"pod default/web"}
    assert about["kube_events.Recorded"] == {"container default/web/app"}
    assert about["prober.ProbeFailed"] == {"probe default/web/side/Liveness"}
    assert about["devices.DevicesChosen"] == {"container default/web/app", "container default/db/app"}
    assert about["devices.DevicesListed"] == about["kernel.LogStarted"] == {"node node-1"}
    assert about["image_gc.ImageRemoved"] == {"gc image_gc"}


def test_images_first_detected_in_one_second_have_the_order_of_get(node: WrittenNode, tmp_path: Path) -> None:
    for name in ("z:1", "y:1", "x:1"):  # from the last id to the first
        node.now += 200
        everything = tuple(image(one) for one in ("app:1", "z:1", "y:1", "x:1") if one >= name or one == "app:1")
        node.write(IMAGES, image_gc.ImagesChanged(at=node.now, used_until=0, seen=everything))
    found = data(node, tmp_path)
    current = rows(found, "image", found["summary"]["entries"])
    ranks = dict(
        zip(found["image.objects"], (found["image.rank"][at - 1] for at in found["image.start"][1:]), strict=True)
    )
    printed = [row[0] for row in columns(node.run("get", "images", "--no-headers", "--at", "-0s").output)]
    assert [current[name][0][0] for name in sorted(current, key=lambda one: (ranks[one], one))] == printed
    assert [one[0] for one in printed[-3:]] == ["z", "y", "x"]


def test_a_collector_is_idle_after_its_run_and_tells_what_it_removed(node: WrittenNode, tmp_path: Path) -> None:
    found = data(node, tmp_path)
    [cells] = rows(found, "gc", found["summary"]["entries"]).values()
    assert [cell[0] for cell in cells if len(cell) == 1] == [
        "image_gc", "idle", "1", "period", "removed 1, freed 400MB, failed 0",
    ]  # fmt: skip


def test_a_part_of_the_log_begins_with_the_state_before_it(node: WrittenNode, tmp_path: Path) -> None:
    begin, end = f"@{NOON // 1000 + 65}", f"@{NOON // 1000 + 75}"
    found = data(node, tmp_path, "--from", begin, "--to", end)
    expected = node.run("get", "pods", "-A", "--no-headers", "--at", begin).output
    assert [row[:2] for row in columns(expected)] == [name.split("/") for name in sorted(rows(found, "pod", 0))]
    every = node.run("diff", "--from", begin, "--to", end, "--show", "events").output.splitlines()
    assert 0 < found["summary"]["entries"] == len(every)


def test_an_entry_that_cannot_be_decoded_is_shown_as_it_is(node: WrittenNode, tmp_path: Path) -> None:
    with node.server.changed:
        node.server.append(Record("pod.FromTheFuture@9", "pod/default/web", "", "pod#1", "", b"\xc1"))
        node.server.append(Record("", "", "", "", "", b""))
    file = tmp_path / "page.html"
    result = node.run("replay", "--html", str(file))
    assert result.status == 0
    assert "1 entry of the log" in result.errors
    found = parts(file.read_text(encoding="utf-8"))
    assert found["text.0"][-2].startswith('"undecodable')
    assert "default/web" in rows(found, "pod", found["summary"]["entries"])


def test_no_text_of_the_log_is_in_the_page_as_it_is(node: WrittenNode, tmp_path: Path) -> None:
    node.now += SECOND
    text = "<script>hostile('x')</script>\u2028</script>"
    hostile = failed_probe(1, node.now)
    node.write(LIVENESS, msgspec.structs.replace(hostile, output=text))
    file = tmp_path / "page.html"
    node.run("replay", "--html", str(file))
    page = file.read_text(encoding="utf-8")
    assert "hostile" not in page
    assert "<script>hostile(" in parts(page)["text.0"][-1]
    assert "\\u2028" in parts(page)["text.0"][-1]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(st.sampled_from(["pod", "container", "exit_code", "result", "severity", "name"]), ANYTHING)
TYPES = st.sampled_from(["pod.ContainerExited@1", "kube_events.Recorded@1", "image_gc.RunStarted@1", "prober.X@1"])
KEYS = st.sampled_from(["pod/default/web", "prober/a/b/c/Liveness", "image_gc/node", "pod/", "prober/", "/"])
RECORDS = st.builds(
    Record,
    type=TYPES | st.text(),
    entity=KEYS | st.text(),
    subject=st.sampled_from(["container/app", "run/1", "event/x"]) | st.text(),
    actor=st.text(),
    cause=st.sampled_from(["1-1", "99999999999999-3", "-", "request"]) | st.text(),
    data=st.binary(max_size=20) | st.builds(msgpack.packb, ANYTHING | FIELDS),
)


@given(records=st.lists(RECORDS, min_size=1, max_size=20))
@example(records=[Record("x.Y@1", "x/1", "", "", "", msgpack.packb({0: 0}))])  # a field that has a number for a name
def test_any_entry_is_shown_whatever_it_contains(
    records: list[Record], tmp_path_factory: pytest.TempPathFactory
) -> None:
    node = WrittenNode()
    with node.server.changed:
        for record in records:
            node.server.append(record)
    file = tmp_path_factory.mktemp("page") / "page.html"
    result = node.run("replay", "--html", str(file))
    assert result.status == 0, result
    found = parts(file.read_text(encoding="utf-8"))
    for field in ("type", "entity", "subject"):
        words = [found[f"entry.{field}.words"][one] for one in found[f"entry.{field}"]]
        assert words[1:] == [getattr(record, field) for record in records]
    assert len(found["text.0"]) == len(records) + 1


def test_the_page_can_be_read_only_by_its_owner_and_replaces_an_older_one(node: WrittenNode, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("older")
    data(node, tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (("--from", "soon"), 1, "error: --from: found 'soon', expected a duration before now"),
        (("--from", "#9", "--to", "#5"), 1, "error: --from: found #9, expected a moment before --to"),
        (("--from", "#9", "--to", "#9"), 1, "error: --html: found no entries between --from and --to, expected at"),
        (("--at", "#9"), 2, "found --at with --html, expected one of them."),
        (("--only", "pod/web"), 2, "found --html with --only, expected one of them."),
        (("-f",), 2, "found --html with --follow, expected one of them."),
        (("--speed", "2"), 2, "found --html with --speed, expected one of them."),
        (("--step",), 2, "found --html with --step, expected one of them."),
        (("--verify",), 2, "found --html with --verify, expected one of them."),
        (("-o", "json"), 2, "found --html with --output, expected one of them."),
    ],
)
def test_what_cannot_be_a_page_is_an_error_and_leaves_no_file(
    node: WrittenNode, tmp_path: Path, words: Sequence[str], status: int, error: str
) -> None:
    result = node.run("replay", "--html", str(tmp_path / "page.html"), *words)
    assert (result.output, result.status) == ("", status)
    assert error in result.errors
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_an_error(node: WrittenNode, tmp_path: Path) -> None:
    result = node.run("replay", "--html", str(tmp_path / "none" / "page.html"))
    assert result.errors == f"error: --html: {tmp_path}/none/page.html cannot be written: No such file or directory\n"
    assert result.status == 1


def test_a_symbolic_link_stays_and_its_file_is_replaced(node: WrittenNode, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for target in (folder / "older.html", folder / "new.html"):
        link = tmp_path / "page.html"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        assert data(node, tmp_path)["summary"]["entries"] > 40
        assert link.readlink() == target
        assert target.stat().st_mode & 0o777 == 0o600
    assert len(list(folder.iterdir())) == 2


def test_a_special_file_is_refused_before_anything_is_read_and_stays(node: WrittenNode, tmp_path: Path) -> None:
    pipe, link, circle = tmp_path / "pipe", tmp_path / "link", tmp_path / "circle"
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")
    circle.symlink_to(circle)
    before = sorted(tmp_path.iterdir())
    for file, said in (
        (pipe, f"error: --html: {pipe}: found a pipe, expected a regular file or a new name; nothing was written\n"),
        (link, f"error: --html: {link}: found a device, expected a regular file or a new name; nothing was written\n"),
    ):
        # Reading would find that there are no entries.
        assert node.run("replay", "--html", str(file), "--from", "#9", "--to", "#9") == ("", said, 1)
    circular = node.run("replay", "--html", str(circle))
    assert (circular.output, circular.status) == ("", 1)
    assert circular.errors.startswith(f"error: --html: {circle} cannot be written: ")
    assert pipe.is_fifo()
    assert link.readlink() == Path("/dev/null")
    assert Path("/dev/null").is_char_device()
    assert sorted(tmp_path.iterdir()) == before


def test_a_later_entry_is_not_in_the_page(node: WrittenNode, tmp_path: Path) -> None:
    last = node.server.last
    found = data(node, tmp_path, "--to", f"#{last.n - 1}")
    position = Position(int(sum(found["entry.milliseconds"])), int(sum(found["entry.number"])))
    assert position.n == last.n - 1
