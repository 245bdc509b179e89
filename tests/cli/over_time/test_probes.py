"""`chronolet history probes`, on a real redis-server and archive folder: outcomes by run, and what is not recorded."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chronolet.adapters.probes.results.segment_files import ArchivedSegments
from chronolet.adapters.probes.results.segment_writer import SegmentWriter
from chronolet.adapters.probes.results.writer import RedisResults
from chronolet.cli.services import Services
from chronolet.keeper import signals, wanted
from chronolet.keeper.effects import KEEPER
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.rules.probes.segments.segment import Lost
from chronolet_schemas.keys import Keys
from chronolet_schemas.times import time_of
from tests.cli.support.written_node import Result, columns, run
from tests.integration.keeper.support import NODE, Context, Desk, desk
from tests.rules.probes.segments.outcomes import outcome
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS, wait_until

FAILURE = {"outcome": "failure", "code": "503", "output": "HTTP probe failed with statuscode: 503\n"}


class Stage:
    """A node with an archive, and one process that writes segments. `begin`: when its log begins, in milliseconds."""

    def __init__(self, at_desk: Desk) -> None:
        self.desk = at_desk
        self.channel = Channel(Address(at_desk.url), HANG_SECONDS)
        self.begin = time_of(at_desk.written[0])
        self.writer = self.process("p")
        self.archived = "0-0"

    def process(self, name: str) -> SegmentWriter:
        return SegmentWriter(NODE, lambda: name, seconds=0.0)

    def segment(self, *outcomes: tuple[int, dict[str, str]], writer: SegmentWriter | None = None) -> None:
        """Write a segment of outcomes: milliseconds since `begin`, and fields."""
        writer = writer or self.writer
        for at, fields in outcomes:
            writer.take(outcome(self.begin + at, **fields))
        writer.write(self.channel)

    def archive(self) -> Path:
        """Move all segments to an archive file."""
        upto = str([entry.id for entry in self.desk.segments.entries()][-1])
        effect = wanted.ArchiveProbes(subject="probes", intent="probes/1", after=self.archived, upto=upto)
        done = self.desk.keeping.probes.write(effect, Context(self.desk.tokens[KEEPER]))
        assert isinstance(done, signals.ProbeArchiveDone)
        self.archived = upto
        return Path(self.desk.archive.storage.place(done.file))

    def command(self, *words: str) -> Result:
        flags = ("--redis", self.desk.url, "--root-dir", str(self.desk.folder), "--hostname-override", NODE)
        return run(Services(), "history", "probes", *words, *flags)

    def found(self, *words: str) -> dict[str, Any]:
        """Return the output as JSON, once all outcomes are in the past."""
        wait_until(lambda: time.time() * 1000 > self.begin + 100, "the end of the time")
        result = self.command("-o", "json", *words)
        assert result.status == 0, result
        found: dict[str, Any] = json.loads(result.output)
        return found

    def runs(self, *words: str) -> list[tuple[str, str, list[int]]]:
        """Return pod, outcome and times since `begin` of each run."""
        return [
            (probe["pod"], one["outcome"], [at - self.begin for at in one["at"]])
            for probe in self.found(*words)["probes"]
            for one in probe["runs"]
        ]

    def gaps(self, *words: str) -> list[tuple[str, int | None]]:
        return [(one["why"], one.get("outcomes")) for one in self.found(*words)["notRecorded"]]


@pytest.fixture
def stage(redis_server: PrivateRedis, tmp_path: Path) -> Iterator[Stage]:
    with desk(redis_server.url, tmp_path) as opened:
        made = Stage(opened)
        yield made
        made.channel.disconnect()


def test_files_and_stream_are_one_history(stage: Stage) -> None:
    stage.segment((1, {}), (11, {}))
    stage.archive()
    stage.segment((21, {}), (31, FAILURE))
    stage.archive()
    stage.segment((41, FAILURE), (51, {}))
    assert stage.runs() == [
        ("web", "success", [1, 11, 21]),
        ("web", "failure", [31, 41]),
        ("web", "success", [51]),
    ]


def test_a_segment_that_is_in_a_file_and_in_the_stream_counts_once(stage: Stage) -> None:
    """The keeper was killed after it wrote the file."""
    stage.segment((1, {}))
    stage.segment((2, {}))
    entries = stage.channel.call("XRANGE", Keys(NODE).probe_segments, "-", "+")
    stage.archive()
    for entry_id, fields in entries:
        later = f"{int(entry_id.split(b'-')[0]) + 60_000}-{entry_id.split(b'-')[1].decode()}"
        stage.channel.call("XADD", Keys(NODE).probe_segments, later, *fields)
    assert stage.runs() == [("web", "success", [1, 2])]


def test_outcomes_of_an_open_segment_are_shown(stage: Stage) -> None:
    stage.segment((1, {}))
    results = RedisResults(stage.desk.url, NODE, flush_seconds=0.01, segment_seconds=1e9, timeout_seconds=HANG_SECONDS)
    for at in (1, 2, 3):
        results.add(outcome(stage.begin + at))
    key = Keys(NODE).probe_results
    wait_until(lambda: stage.channel.call("XLEN", key) == 3, "all outcomes")
    last = stage.channel.call("XREVRANGE", key, "+", "-", "COUNT", 1)[0][1]
    stage.channel.call("XADD", key, "*", *last)  # written twice
    stage.channel.call("XADD", key, "*", "pod", "somebody", "at", "else")
    assert stage.runs() == [("web", "success", [1, 2, 3])]
    results.stop()


def test_pods_and_containers_are_selected(stage: Stage) -> None:
    stage.segment(
        (1, {}),
        (2, {"container": "helper"}),
        (3, {"pod": "default/db"}),
        (4, {"pod": "kube-system/web"}),
    )
    assert [(one[0], one[2]) for one in stage.runs()] == [("db", [3]), ("web", [1]), ("web", [2]), ("web", [4])]
    assert stage.runs("pod/web") == stage.runs("web") == [("web", "success", [1]), ("web", "success", [2])]
    assert stage.runs("web", "db", "-c", "app") == [("db", "success", [3]), ("web", "success", [1])]
    assert stage.runs("web", "-n", "kube-system") == stage.runs("-n", "kube-system") == [("web", "success", [4])]
    missing = stage.command("web", "gone")
    assert (missing.status, missing.errors) == (1, 'Error from server (NotFound): probes "gone" not found\n')
    assert "default/web" in missing.output


def test_only_outcomes_of_the_time_are_shown(stage: Stage) -> None:
    stage.segment((1, {}), (11, {}), (21, {}))
    stage.archive()
    stage.segment((31, {}))
    times = {name: f"@{(stage.begin + at) / 1000:.3f}" for name, at in (("--from", 5), ("--to", 25))}
    assert stage.runs("--from", times["--from"], "--to", times["--to"]) == [("web", "success", [11, 21])]
    assert stage.runs("--to", f"@{(stage.begin + 1) / 1000:.3f}") == [("web", "success", [1])]


def test_the_table_has_a_row_per_run(stage: Stage) -> None:
    stage.segment(*((10 * number, {"output": "ok" if number else "hi\x1b\n"}) for number in range(4)), (90, FAILURE))
    stage.found()
    head, first, second, *gap = columns(stage.command().output)
    assert head == [
        *("POD", "CONTAINER", "ATTEMPT", "PROBE", "RESULT", "COUNT", "FROM", "UNTIL", "EVERY", "TOOK", "OUTPUT"),
    ]
    assert first[:6] == ["default/web", "app", "2", "Liveness", "success 200", "4"]
    assert first[8:] == ["10ms", "3ms", "hi\\x1b (and others)"]
    assert [*second[4:6], *second[8:]] == [
        *("failure 503", "1", "<none>", "3ms", "HTTP probe failed with statuscode: 503")
    ]
    assert gap == []
    assert "POD" not in stage.command("--no-headers").output


def test_longer_pauses_are_shown(stage: Stage) -> None:
    stage.segment((0, {}), (10, {}), (20, {}), (30, {"milliseconds": "40000"}), (90, {}))
    stage.found()
    assert columns(stage.command().output)[1][8:10] == ["10ms, up to 60ms", "3ms, up to 38s"]


def test_a_node_without_outcomes_says_so(stage: Stage) -> None:
    assert stage.found()["probes"] == []
    result = stage.command()
    assert (result.status, result.output, result.errors) == (0, "", "No probes in that time.\n")


def test_flags_of_probes_are_refused_for_other_subjects(stage: Stage) -> None:
    flags = ("--redis", stage.desk.url, "--root-dir", str(stage.desk.folder))
    result = run(Services(), "history", "devices", "-c", "app", *flags)
    assert (result.status, "-n and -c select probes" in result.errors) == (2, True)


# -- what is not recorded
def test_a_process_that_runs_or_has_ended_has_no_gap(stage: Stage) -> None:
    stage.segment((1, {}))
    assert stage.gaps() == [], "process p is alive"
    other = stage.process("q")
    stage.segment((2, {}), writer=other)
    assert stage.gaps() == [("unwritten", None)]
    other.end(stage.channel)
    assert stage.gaps() == []


def test_a_restart_under_the_same_name_shows_what_the_killed_process_lost(stage: Stage) -> None:
    stage.segment((1, {}))
    stage.writer = stage.process("p")
    wait_until(lambda: time.time() * 1000 > stage.begin + 50, "another start time")
    stage.writer = stage.process("p")
    stage.segment((51, {}))
    assert stage.gaps() == [("unwritten", None)]


def test_dropped_and_missing_outcomes_are_shown(stage: Stage) -> None:
    stage.segment((1, {}))
    stage.writer.drop(Lost(stage.begin + 2, stage.begin + 5, 7))
    stage.segment((6, {}))
    stage.segment((7, {}), (8, {}))
    third = stage.channel.call("XRANGE", Keys(NODE).probe_segments, "-", "+")[2][0]
    stage.channel.call("XDEL", Keys(NODE).probe_segments, third)
    stage.segment((9, {}))
    assert sorted(stage.gaps()) == [("dropped", 7), ("missing", 2)]
    assert {line[0] for line in columns(stage.command().output)[-2:]} == {"7", "2"}


def test_deleted_files_are_where_the_history_begins(stage: Stage) -> None:
    stage.segment((1, {}), (2, {}))
    stage.archive().unlink()
    wait_until(lambda: time.time() * 1000 > stage.begin + 5, "later")
    stage.segment((11, {}))
    assert stage.runs() == [("web", "success", [11])]
    assert stage.gaps() == [("older", 2)]
    assert stage.command().errors.startswith("note: the recorded outcomes begin at ")


def test_a_damaged_file_is_named_and_the_rest_is_shown(stage: Stage) -> None:
    stage.segment((1, {}))
    path = stage.archive()
    stage.segment((2, {}))
    stage.channel.call("XADD", Keys(NODE).probe_segments, "*", "process", "p", "outcomes", "2", "data", b"damaged")
    path.write_bytes(path.read_bytes()[:-2])
    assert stage.runs() == [("web", "success", [2])]
    first, second, *_ = sorted(stage.command().errors.splitlines())
    assert first == f"note: {path}: truncated"
    assert "of the stream probe_segments: the segment cannot be decoded" in second


def test_an_archive_that_cannot_be_listed_is_named_and_the_rest_is_shown(stage: Stage) -> None:
    stage.segment((1, {}))
    folder = stage.desk.folder / "archive"
    folder.write_text("a file where the folder should be")
    assert stage.runs() == [("web", "success", [1])]
    assert f"{folder}/run-1: the archive cannot be listed" in stage.command().errors


def test_a_stream_of_another_type_is_an_error_of_one_line(stage: Stage) -> None:
    stage.channel.call("SET", Keys(NODE).probe_segments, "text")
    result = stage.command()
    assert (result.status, len(result.errors.splitlines())) == (1, 1)
    assert "probe_segments: WRONGTYPE" in result.errors


def test_files_of_another_time_are_not_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.segment((1, {}))
    stage.archive()
    stage.segment((81, {}))
    stage.archive()
    read: list[str] = []
    segments = ArchivedSegments.segments

    def counted(files: ArchivedSegments, name: str) -> Any:
        read.append(name)
        return segments(files, name)

    monkeypatch.setattr(ArchivedSegments, "segments", counted)
    assert stage.runs("--from", f"@{(stage.begin + 50) / 1000:.3f}") == [("web", "success", [81])]
    assert len(read) == 1
    assert stage.gaps("--from", f"@{(stage.begin + 50) / 1000:.3f}") == []
