"""Segments in a real Redis are archived and removed, whatever is killed meanwhile; no outcome is lost."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from chronolet.adapters.archive.places import place
from chronolet.adapters.probes.results.segment_files import ArchivedSegments
from chronolet.adapters.probes.results.segment_stream import RedisSegments
from chronolet.adapters.probes.results.segment_writer import SegmentWriter
from chronolet.history.archives import NodeArchive
from chronolet.keeper import signals, wanted
from chronolet.keeper.effects import KEEPER
from chronolet.keeper.workers import probe_keeping
from chronolet.keeper.workers.probe_keeping import ProbeKeeping
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.ports.pods.probe_segments import SegmentEntry
from chronolet.rules.probes.segments.encoding import columns, decode
from chronolet.rules.probes.segments.gaps import gaps, head_of
from chronolet.rules.probes.segments.segment import Segment
from chronolet_schemas.envelope import START, Position, Signal
from chronolet_schemas.keys import Keys
from tests.integration.keeper.support import NODE, Context, Crash, Desk, desk
from tests.rules.probes.segments.outcomes import T0, listed, outcome
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS

POINTS = ("before probes.write", "after probes.write", "before probes.trim", "after probes.trim")


class Stage:
    """A desk, and processes that write segments of two outcomes."""

    def __init__(self, at_desk: Desk) -> None:
        self.desk = at_desk
        self.channel = Channel(Address(at_desk.url), HANG_SECONDS)
        self.writers: dict[str, SegmentWriter] = {}
        self.added = 0

    def write(self, count: int, process: str = "p") -> str:
        """Write `count` segments; return the id of the last one."""
        writer = self.writers.setdefault(process, SegmentWriter(NODE, lambda: process, seconds=0.0))
        for _ in range(count):
            for _ in range(2):
                writer.take(outcome(T0 + self.added))
                self.added += 1
            writer.write(self.channel)
        return str([entry.id for entry in self.desk.segments.entries()][-1])

    def archive(self, after: str, upto: str, crash_at: str = "") -> Signal:
        effect = wanted.ArchiveProbes(subject="probes", intent="probes/1", after=after, upto=upto)
        return self.desk.keeping.probes.write(effect, Context(self.desk.tokens[KEEPER], crash_at))

    def delete(self, *names: str, crash_at: str = "") -> Signal:
        effect = wanted.DeleteProbes(subject="probes", intent="probes/1", files=names)
        return self.desk.keeping.probes.delete(effect, Context(self.desk.tokens[KEEPER], crash_at))

    @property
    def files(self) -> ArchivedSegments:
        archive = self.desk.archive
        return ArchivedSegments(archive)

    def names(self) -> list[str]:
        return [part.name for part in self.files.parts()]

    def archived(self) -> list[Segment]:
        return [segment for name in self.names() for segment in self.files.segments(name)]

    def in_stream(self) -> list[Segment]:
        return [decode(entry.data) for entry in self.desk.segments.entries()]


@pytest.fixture
def stage(redis_server: PrivateRedis, tmp_path: Path) -> Iterator[Stage]:
    with desk(redis_server.url, tmp_path) as opened:
        made = Stage(opened)
        yield made
        made.channel.disconnect()


def times(segments: list[Segment]) -> list[int]:
    return [one[8] - T0 for one in listed(segments)]


def refused(answer: Signal) -> str:
    assert isinstance(answer, signals.JobRefused), answer
    return answer.error


def test_segments_move_from_the_stream_to_a_file(stage: Stage) -> None:
    first = stage.write(3)
    done = stage.archive("0-0", first)
    assert isinstance(done, signals.ProbeArchiveDone)
    assert (done.file, done.outcomes) == (f"0-0..{first}.probes", 6)
    second = stage.write(2)
    third = stage.write(1)
    assert isinstance(stage.archive(first, second), signals.ProbeArchiveDone)
    assert (times(stage.archived()), times(stage.in_stream())) == (list(range(10)), [10, 11])
    assert stage.names() == [f"0-0..{first}.probes", f"{first}..{second}.probes"]
    assert stage.files.missing(START, Position.parse(second)) == []
    assert third > second


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_point_loses_nothing(stage: Stage, point: str) -> None:
    """The job is repeated, while more segments arrive."""
    first = stage.write(3)
    number = 1 + POINTS.index(point)
    with pytest.raises(Crash):
        stage.archive("0-0", first, f"{number} {point}")
    last = stage.write(1, "q")
    done = stage.archive("0-0", first)
    assert isinstance(done, signals.ProbeArchiveDone)
    assert (done.file, done.outcomes) == (f"0-0..{first}.probes", 6)
    content = stage.desk.folder / "archive" / "run-1" / done.file
    assert done.size_bytes == content.stat().st_size
    assert (times(stage.archived()), times(stage.in_stream())) == ([0, 1, 2, 3, 4, 5], [6, 7])
    assert last > first


def test_a_job_that_is_given_up_after_its_file_was_written_loses_nothing(stage: Stage) -> None:
    """The next job has a larger part, whose beginning the stream may lack. Both files stay."""
    first = stage.write(2)
    with pytest.raises(Crash):
        stage.archive("0-0", first, "4 after probes.trim")
    second = stage.write(2)
    assert isinstance(stage.archive("0-0", second), signals.ProbeArchiveDone)
    assert sorted(times(stage.archived())) == list(range(8))
    assert gaps(map(head_of, stage.archived()), lambda *_: True) == []


def test_a_keeper_that_lost_its_shard_does_not_replace_the_file_of_its_successor(stage: Stage) -> None:
    """It stalls before it reads the stream, and its successor meanwhile archives and removes the same segments."""
    last = stage.write(2)

    class Stalled(RedisSegments):
        def entries(self, after: Position = START, upto: Position | None = None) -> Iterator[SegmentEntry]:
            assert isinstance(stage.archive("0-0", last), signals.ProbeArchiveDone)
            return super().entries(after, upto)

    stalled = ProbeKeeping(
        Stalled(stage.desk.url, NODE), stage.desk.node_archive.current, ArchivedSegments, stage.desk.store
    )
    effect = wanted.ArchiveProbes(subject="probes", intent="probes/1", after="0-0", upto=last)
    stalled.write(effect, Context(stage.desk.tokens[KEEPER]))
    assert times(stage.in_stream()) == []
    assert times(stage.archived()) == [0, 1, 2, 3]


def test_segments_of_several_processes_are_one_segment_each(stage: Stage) -> None:
    for _ in range(3):
        stage.write(1, "p")
        last = stage.write(1, "q")
    stage.archive("0-0", last)
    assert [(one.process, one.number, one.upto, one.outcomes) for one in stage.archived()] == [
        ("p", 1, 3, 6),
        ("q", 1, 3, 6),
    ]


def test_other_and_damaged_entries_do_not_stop_archiving(stage: Stage) -> None:
    key = Keys(NODE).probe_segments
    stage.write(1)
    (first,) = stage.in_stream()
    stage.channel.call("XADD", key, "*", "somebody", "else")
    stage.channel.call("XADD", key, "*", "process", "p", "outcomes", "9" * 5_000)
    stage.channel.call("XADD", key, "*", "process", "p", "outcomes", "2", "data", b"\x00damaged")
    later = zlib.compress(msgspec.msgpack.encode(replace(columns(first), format=2)))
    stage.channel.call("XADD", key, "*", "process", "p", "outcomes", "2", "data", later)
    last = stage.write(1)
    found = measured(stage)
    assert found is not None
    assert (found.upto, found.segments) == (last, 6)
    done = stage.archive("0-0", last)
    assert isinstance(done, signals.ProbeArchiveDone)
    assert (done.outcomes, done.skipped) == (4, 2)
    assert times(stage.archived()) == [0, 1, 2, 3]
    assert stage.in_stream() == []


def test_nothing_is_removed_if_the_file_cannot_be_written(stage: Stage) -> None:
    last = stage.write(2)
    (stage.desk.folder / "archive").write_text("a file where the folder should be")
    assert "archive" in refused(stage.archive("0-0", last))
    assert times(stage.in_stream()) == [0, 1, 2, 3]


def test_nothing_is_removed_if_the_file_returns_something_else(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    last = stage.write(2)
    written = ArchivedSegments.segments
    monkeypatch.setattr(ArchivedSegments, "segments", lambda *given: list(written(*given))[1:])
    assert "does not return what was written" in refused(stage.archive("0-0", last))
    assert times(stage.in_stream()) == [0, 1, 2, 3]


def test_a_damaged_file_of_an_earlier_attempt_is_named(stage: Stage) -> None:
    last = stage.write(2)
    with pytest.raises(Crash):
        stage.archive("0-0", last, "2 after probes.write")
    path = stage.desk.folder / "archive" / "run-1" / stage.names()[0]
    path.write_bytes(path.read_bytes()[:-4])
    assert f"{path}: truncated" in refused(stage.archive("0-0", last))
    assert times(stage.in_stream()) == [0, 1, 2, 3]


def test_a_folder_of_another_host_is_refused(stage: Stage, tmp_path: Path) -> None:
    upto = stage.desk.write(10)
    stage.desk.archive_upto(upto)
    last = stage.write(1)
    other = NodeArchive(place("", tmp_path / "other"), NODE, stage.desk.store)
    keeping = ProbeKeeping(stage.desk.segments, other.current, ArchivedSegments, stage.desk.store)
    stage.desk.keeping = replace(stage.desk.keeping, probes=keeping)
    assert "has no file of the log" in refused(stage.archive("0-0", last))
    assert times(stage.in_stream()) == [0, 1]


# -- deleting
@pytest.mark.parametrize("crash_at", ["", "1 before probes.delete", "2 after probes.delete", "3 before probes.delete"])
def test_files_are_deleted(stage: Stage, crash_at: str) -> None:
    ends = ["0-0"]
    for _ in range(3):
        ends.append(stage.write(1))
        stage.archive(ends[-2], ends[-1])
    names = stage.names()
    if crash_at:
        with pytest.raises(Crash):
            stage.delete(*names[:2], crash_at=crash_at)
    assert isinstance(stage.delete(*names[:2]), signals.ProbeDeletionDone)
    assert stage.names() == names[2:]
    assert stage.files.missing(Position.parse(ends[2]), Position.parse(ends[3])) == []


def test_a_file_that_cannot_be_deleted_is_named(stage: Stage) -> None:
    folder = stage.desk.folder / "archive" / "run-1"
    (folder / "x").mkdir(parents=True)
    assert str(folder / "x") in refused(stage.delete("x"))


# -- measuring
def measured(stage: Stage) -> signals.ProbesMeasured | None:
    return stage.desk.keeping.probes.measured()


def test_what_waits_is_measured(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(stage) is None
    last = stage.write(3)
    begun_at = next(stage.desk.segments.entries()).id.milliseconds
    assert measured(stage) == signals.ProbesMeasured(begun_at=begun_at, upto=last, segments=3)
    monkeypatch.setattr(probe_keeping, "MOST_OUTCOMES", 4)
    second = str([entry.id for entry in stage.desk.segments.entries()][1])
    assert measured(stage) == signals.ProbesMeasured(begun_at=begun_at, upto=second, segments=2, is_full=True)
    monkeypatch.setattr(probe_keeping, "MOST_SEGMENTS", 1)
    found = measured(stage)
    assert found is not None
    assert (found.segments, found.is_full) == (1, True)
    stage.archive("0-0", last)
    assert measured(stage) == signals.ProbesMeasured(files=(f"0-0..{last}.probes",))


@pytest.mark.parametrize(
    "damage",
    [
        lambda stage: stage.channel.call("SET", Keys(NODE).probe_segments, "text"),
        lambda stage: (stage.desk.folder / "archive").write_text("a file where the folder should be"),
    ],
)
def test_what_cannot_be_measured_does_not_stop_the_measurement_of_the_log(
    stage: Stage, damage: Callable[[Stage], object]
) -> None:
    stage.desk.write(10)
    damage(stage)
    assert measured(stage) is None
    assert stage.desk.measured().last == str(stage.desk.written[-1].position)
