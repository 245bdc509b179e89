"""Reading an exported history: the output of `log -o json`, and archive files, become the entries of the log again."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.cli.history.log import as_json
from chronolet.kernel.log.archive import Archive
from chronolet.testing.exported import HistoryError, entries_of
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import START, Entry, Event, Position
from chronolet_schemas.times import with_time
from tests.cli.support.busy_node import busy
from tests.golden.samples import all_classes, least, sample

EVENTS = [cls for cls in all_classes() if issubclass(cls, Event)]
BEGAN = kernel.LogStarted(run="r", node="node-1", shards={})


def entry(event: Event, n: int = 1, milliseconds: int = 1_800_000_000_000) -> Entry:
    name = registry.type_of(type(event))
    return Entry(Position(milliseconds, n), name, "node/x", event.subject(), "pod/0#1", "5-1", codec.encode(event))


def exported(path: Path, entries: Sequence[Entry]) -> Path:
    path.write_text("".join(f"{as_json(one)}\n" for one in entries))
    return path


@pytest.mark.parametrize("cls", EVENTS, ids=registry.type_of)
@pytest.mark.parametrize("made", [sample, least])
def test_every_event_is_read_as_it_was(cls: type[Event], made: Callable[[Any], Any], tmp_path: Path) -> None:
    before = entry(made(cls))
    [after] = entries_of(exported(tmp_path / "one.jsonl", [before]))
    assert after[:-1] == before[:-1]
    assert codec.decode(after.type, after.data, cls) == codec.decode(before.type, before.data, cls)


def test_there_are_many_events() -> None:
    assert len(EVENTS) > 100


def test_a_whole_log_is_read_as_it_was(tmp_path: Path) -> None:
    entries = list(busy().store.scan(START))
    found = entries_of(exported(tmp_path / "all.jsonl", entries))
    assert [one[:-1] for one in found] == [one[:-1] for one in entries]
    assert len(found) > 40


def test_times_of_entries_that_are_ahead_of_the_clock_are_kept(tmp_path: Path) -> None:
    ahead = entry(BEGAN)._replace(data=with_time(codec.encode(BEGAN), 1_700_000_000_000))
    assert entries_of(exported(tmp_path / "one.jsonl", [ahead])) == [ahead]


def test_entries_of_other_programs_and_unknown_types_stay_what_they_are(tmp_path: Path) -> None:
    future = Entry(Position(7, 2), "pod.FromTheFuture@1", "pod/a/b", "", "pod#1", "", b"\x81\xa6a_name\x01")
    newer = Entry(Position(7, 3), "kernel.ClockJumped@9", "shard/pod", "", "pod#1", "", b"\x81\xa6a_name\x01")
    foreign = Entry(Position(8, 0), "", "", "", "", "", b"")
    entries = [entry(BEGAN, milliseconds=7), future, newer, foreign]
    assert list(entries_of(exported(tmp_path / "some.jsonl", entries))) == entries


def test_archive_files_are_read_alone_or_together(tmp_path: Path) -> None:
    entries = list(busy().store.scan(START))
    archive = Archive(FolderStorage(tmp_path, "run-1"), "node-1", "run-1")
    first = archive.write(entries[:20], START)
    archive.write(entries[20:], entries[19].position)
    assert list(entries_of(tmp_path / "run-1" / first.name)) == entries[:20]
    assert list(entries_of(tmp_path / "run-1")) == entries


LINE = json.loads(as_json(entry(BEGAN)))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "found no entries, expected the output of `chronolet log -o json`"),
        ("\n\n", "found no entries"),
        ("hello\n", ":1: found 'hello' (DecodeError: JSON is malformed"),
        ("[1]\n", ":1: found '[1]' (TypeError:"),
        (json.dumps(LINE) + "\n{}\n", ":2: found '{}' (KeyError: 'position')"),
        (json.dumps({**LINE, "position": "x"}), ":1: found"),
        (json.dumps({**LINE, "position": 5}), ":1: found"),
        (json.dumps({**LINE, "time": "yesterday"}), ":1: found"),
        (json.dumps({**LINE, "entity": None}), ":1: found"),
        (json.dumps({**LINE, "position": "7-5"}), "expected event number 1, found 7-5: export the whole log"),
        (f"{json.dumps(LINE)}\n" * 2, "expected event number 2, found 1800000000000-1"),
        (
            f"{json.dumps(LINE)}\n{json.dumps({**LINE, 'position': '5-2'})}\n",
            "found entry 5-2 after 1800000000000-1, expected ascending positions",
        ),
    ],
)
def test_a_file_that_is_no_whole_history_is_named(content: str, error: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(HistoryError) as raised:
        entries_of(path)
    assert str(path) in str(raised.value)
    assert error in str(raised.value)


def test_bytes_and_damaged_archives_are_named(tmp_path: Path) -> None:
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(HistoryError, match="found bytes that are not UTF-8"):
        entries_of(tmp_path / "bytes.jsonl")
    with pytest.raises(HistoryError, match="found no files"):
        entries_of(tmp_path)
    (tmp_path / "1-1..2-2.archive").write_bytes(b"nonsense")
    with pytest.raises(HistoryError, match="not an archive of format 1"):
        entries_of(tmp_path)
    with pytest.raises(FileNotFoundError):
        entries_of(tmp_path / "missing.jsonl")


def test_a_truncated_archive_is_named(tmp_path: Path) -> None:
    entries = list(busy().store.scan(START))
    written = Archive(FolderStorage(tmp_path, "run-1"), "node-1", "run-1").write(entries, START)
    path = tmp_path / "run-1" / written.name
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(HistoryError, match="truncated"):
        entries_of(path)


def test_data_of_any_shape_is_read(tmp_path: Path) -> None:
    """What a person has edited is read; what does not fit is left to the decoder."""
    line = {**LINE, "data": {"run": ["not", "text"], "shards": 5, "node": {"a": None}}}
    (tmp_path / "odd.jsonl").write_text(json.dumps(line))
    [found] = entries_of(tmp_path / "odd.jsonl")
    assert msgspec.msgpack.decode(found.data) == line["data"]
