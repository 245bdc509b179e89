"""Reads the recorded outcomes of probes between two moments.

Input: `Sources`: archive files, the stream of segments and, for what no segment has, the stream of single outcomes;
which probes, two times. Output: `Recorded`. Next: `cli.over_time.probes`. The stream is read before the files, as
segments are removed from it only after they were archived. Damaged files are named, and the rest is read.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from chronolet.kernel.log.archive import ArchiveDamaged
from chronolet.ports.pods.probe_segments import SegmentStream
from chronolet.ports.pods.segment_files import SegmentFiles
from chronolet.rules.probes.segments.encoding import SegmentDamaged, decode
from chronolet.rules.probes.segments.file_names import FilePart
from chronolet.rules.probes.segments.gaps import Head, head_of
from chronolet.rules.probes.segments.merging import add_runs
from chronolet.rules.probes.segments.recorder import Recorder
from chronolet.rules.probes.segments.segment import ProbeKey, Run, Segment
from chronolet_schemas.prober import RawResult

_MARGIN = 600_000
"""How much older than an archive file's name its newest outcomes may be, in milliseconds: clocks differ."""


class Sources(NamedTuple):
    """Where the outcomes of a node are. `single` returns the newest outcomes, newest first."""

    files: SegmentFiles
    stream: SegmentStream
    single: Callable[[], Iterator[RawResult]]


class Recorded(Struct, frozen=True):
    """What was found: the runs of each probe in order of time, and the heads of all segments of that time.

    `begin`: when the oldest segment that was found begins, in milliseconds since the epoch; None if there is none.
    `problems`: what could not be read. `older`: whether there are older files, which were not read.
    """

    runs: dict[ProbeKey, list[Run]]
    heads: tuple[Head, ...]
    begin: int | None
    problems: tuple[str, ...]
    older: bool


class Reading:
    """One reading of the outcomes that began from `first` to `last`, in milliseconds since the epoch."""

    def __init__(self, sources: Sources, is_wanted: Callable[[ProbeKey], bool], first: int, last: int) -> None:
        self._sources = sources
        self._is_wanted = is_wanted
        self._first = first
        self._last = last
        self._heads: dict[tuple[str, int], list[Head]] = {}
        """The heads of the segments of each process."""
        self._runs: dict[ProbeKey, list[Run]] = {}
        self._problems: list[str] = []

    def recorded(self) -> Recorded:
        """Read everything. Raises StoreUnreachable and StoreBroken."""
        streamed = list(self._streamed())
        parts = self._parts()
        due = [part for part in parts if part.last.milliseconds >= self._first - _MARGIN]
        for part in due:
            self._read(part)
        for segment in streamed:
            self._take(segment)
        self._add_single()
        runs = {key: _in_order(of_probe) for key, of_probe in sorted(self._runs.items())}
        heads = tuple(head for of_process in self._heads.values() for head in of_process)
        begin = min((head.begin for head in heads), default=None)
        return Recorded(runs, heads, begin, tuple(self._problems), len(due) < len(parts))

    def _parts(self) -> list[FilePart]:
        try:
            return self._sources.files.parts()
        except OSError as error:
            self._problems.append(f"{self._sources.files.storage.place()}: the archive cannot be listed: {error}")
            return []

    def _streamed(self) -> Iterator[Segment]:
        for entry in self._sources.stream.entries():
            try:
                if entry.data:
                    yield decode(entry.data)
            except SegmentDamaged as error:
                self._problems.append(f"entry {entry.id} of the stream probe_segments: {error}")

    def _read(self, part: FilePart) -> None:
        files = self._sources.files
        try:
            header = files.header(part.name)
            if header.oldest <= self._last and header.newest >= self._first:
                # All or nothing: what precedes damage may be wrong, too.
                for segment in list(files.segments(part.name)):
                    self._take(segment)
            else:
                for head in header.heads:
                    self._heads_of(head).append(head)
        except (ArchiveDamaged, OSError) as error:
            self._problems.append(str(error))

    def _take(self, segment: Segment) -> None:
        """Add a segment, unless all of it was read before: a file may have been written while the stream was read."""
        head = head_of(segment)
        known = self._heads_of(head)
        if not any(other.number <= head.number and head.upto <= other.upto for other in known):
            known.append(head)
            for key, runs in segment.runs.items():
                if self._is_wanted(key):
                    self._add(key, runs)

    def _heads_of(self, head: Head) -> list[Head]:
        """Return the heads of the same process that were read so far."""
        return self._heads.setdefault((head.process, head.started), [])

    def _add(self, key: ProbeKey, runs: Iterable[Run]) -> None:
        found = [part for run in runs if (part := self._part(run)) is not None]
        if found:
            self._runs.setdefault(key, []).extend(found)

    def _part(self, run: Run) -> Run | None:
        """Return the part of a run that is in the time; None if none is."""
        inside = [number for number, at in enumerate(run.starts) if self._first <= at <= self._last]
        if len(inside) == len(run.starts):
            return run
        starts = array("q", (run.starts[number] for number in inside))
        took = bytearray(run.took[number] for number in inside)
        differing = min(run.differing, len(inside))
        return Run(run.outcome, run.code, run.output, starts, took, differing) if inside else None

    def _add_single(self) -> None:
        """Add the outcomes that no segment has: those of open segments, and of processes that were killed."""
        found = reversed([one for result in self._sources.single() for one in _runs_of(result)])
        # By their time, as an outcome may have been written twice. The segments may have many times more outcomes.
        single = {(key, run.starts[0]): run for key, run in found if self._is_wanted(key)}
        for key, runs in self._runs.items():
            for at in itertools.chain.from_iterable(run.starts for run in runs):
                single.pop((key, at), None)
        for (key, _), run in single.items():
            self._add(key, (run,))


def _runs_of(result: RawResult) -> Iterator[tuple[ProbeKey, Run]]:
    """Yield the outcome as a run. An entry that another program or an early release has written is skipped."""
    recorder = Recorder(0, len(result.output))
    try:
        recorder.take(result, 0)
    except (ValueError, OverflowError):
        return
    for key, runs in recorder.close("", 0).runs.items():
        yield from ((key, run) for run in runs)


def _in_order(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of a probe in order of time, with equal neighbours joined."""
    found: list[Run] = []
    add_runs(found, sorted(runs, key=lambda run: run.starts[0]))
    return found
