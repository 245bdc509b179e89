"""The bytes of a segment: a msgpack map of columns (docs/log-format.md specifies it). Pure.

Input: a `Segment`. Output: its map, and the same as compressed msgpack; and back, with every length checked. Next:
`adapters.probes.results`, which writes them to the stream; `file_format`.
"""

from __future__ import annotations

import itertools
import zlib
from array import array
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from chronolet.rules.probes.segments.segment import Lost, ProbeKey, Run, Segment

FORMAT = 1
_LARGEST_BYTES = 4 << 20
"""Four times what the largest segment of a process takes. Garbage of this size takes less than 100 MB of memory."""
LATEST = 253_402_300_799_999
"""The end of the year 9999, in milliseconds since the epoch: later times cannot be shown."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 48)]
"""Counts of merged segments are added, and have to fit into 64 bits."""
_Time = Annotated[int, msgspec.Meta(ge=0, le=LATEST)]
_Row = tuple[str, str, str, _Count, str, str]


class SegmentDamaged(ValueError):  # noqa: N818 - the condition's name
    """The bytes are not a segment, or one of a later format. The text says what was found and expected."""


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The map of a segment, with the names of docs/log-format.md."""

    format: int
    process: str
    started: _Time
    number: _Count
    upto: _Count
    begin: _Time
    end: _Time
    before: _Count
    lost: tuple[_Time, _Time, _Count] | None
    ended: bool
    outcomes: _Count
    probes: list[_Row]
    results: list[tuple[str, str]]
    texts: list[str]
    runs: list[_Count]
    result: list[_Count]
    text: list[_Count]
    differing: list[_Count]
    count: list[_Count]
    start: list[int]
    interval: list[int]
    step: list[int]
    took: bytes


def encode(segment: Segment) -> bytes:
    """Return the segment as the stream has it: compressed msgpack."""
    return zlib.compress(msgspec.msgpack.encode(columns(segment)), 9)


def decode(data: bytes) -> Segment:
    """Decode what `encode` returned. Raises SegmentDamaged."""
    decompressor = zlib.decompressobj()
    try:
        content = decompressor.decompress(data, _LARGEST_BYTES)
        found = msgspec.msgpack.decode(content, type=Columns) if decompressor.eof else None
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SegmentDamaged(f"the segment cannot be decoded: {error}") from error
    if found is None:
        raise SegmentDamaged(f"the segment is truncated, or larger than {_LARGEST_BYTES} bytes")
    return _segment(found)


def from_plain(content: Any) -> Segment:
    """Return the segment of a decoded msgpack map. Raises SegmentDamaged."""
    try:
        return _segment(msgspec.convert(content, Columns))
    except msgspec.MsgspecError as error:
        raise SegmentDamaged(f"the segment cannot be decoded: {error}") from error


def columns(segment: Segment) -> Columns:
    """Return the segment's columns."""
    results, texts = dict[tuple[str, str], int](), dict[str, int]()
    runs = list(itertools.chain.from_iterable(segment.runs.values()))
    intervals = [_interval(run.starts) for run in runs]
    return Columns(
        format=FORMAT,
        process=segment.process,
        started=segment.started,
        number=segment.number,
        upto=segment.upto,
        begin=segment.begin,
        end=segment.end,
        before=segment.before,
        lost=segment.lost,
        ended=segment.ended,
        outcomes=segment.outcomes,
        probes=list(segment.runs),
        runs=[len(of_probe) for of_probe in segment.runs.values()],
        result=[results.setdefault((run.outcome, run.code), len(results)) for run in runs],
        text=[texts.setdefault(run.output, len(texts)) for run in runs],
        results=list(results),
        texts=list(texts),
        differing=[run.differing for run in runs],
        count=[len(run.starts) for run in runs],
        start=[run.starts[0] - segment.begin for run in runs],
        interval=intervals,
        step=[step for run, interval in zip(runs, intervals, strict=True) for step in _steps(run.starts, interval)],
        took=b"".join(run.took for run in runs),
    )


def _interval(starts: array[int]) -> int:
    """Return the median of the times between the starts; 0 for a single one."""
    pauses = sorted(later - earlier for earlier, later in itertools.pairwise(starts))
    return pauses[len(pauses) // 2] if pauses else 0


def _steps(starts: array[int], interval: int) -> Iterator[int]:
    return (later - earlier - interval for earlier, later in itertools.pairwise(starts))


def _segment(found: Columns) -> Segment:
    if found.format != FORMAT:
        raise SegmentDamaged(f"found a segment of format {found.format}, expected {FORMAT}: a later release wrote it")
    _check(found)
    runs = iter(tuple(_runs(found)))
    return Segment(
        process=found.process,
        started=found.started,
        number=found.number,
        upto=found.upto,
        begin=found.begin,
        end=found.end,
        before=found.before,
        lost=None if found.lost is None else Lost(*found.lost),
        ended=found.ended,
        runs={
            ProbeKey(*probe): list(itertools.islice(runs, count))
            for probe, count in zip(found.probes, found.runs, strict=True)
        },
    )


def _check(found: Columns) -> None:
    """Raise SegmentDamaged if the columns do not fit together."""
    each_run = (found.result, found.text, found.differing, found.count, found.start, found.interval)
    outcomes = sum(found.count)
    fits = (
        1 <= found.number <= found.upto,
        len(found.probes) == len(found.runs) == len(set(found.probes)),
        {sum(found.runs)} == {len(column) for column in each_run},
        all(number < len(found.results) for number in found.result),
        all(number < len(found.texts) for number in found.text),
        all(found.count),
        len(found.took) == outcomes == found.outcomes,
        len(found.step) == outcomes - len(found.count),
    )
    if not all(fits):
        raise SegmentDamaged(f"the columns of the segment do not fit together: check {fits.index(False) + 1} failed")


def _runs(found: Columns) -> Iterator[Run]:
    steps, took, reached = iter(found.step), found.took, 0
    for number, count in enumerate(found.count):
        at = found.begin + found.start[number]
        pauses = (step + found.interval[number] for step in itertools.islice(steps, count - 1))
        outcome, code = found.results[found.result[number]]
        yield Run(
            outcome,
            code,
            found.texts[found.text[number]],
            _times(itertools.accumulate(pauses, initial=at)),
            bytearray(took[reached : reached + count]),
            found.differing[number],
        )
        reached += count


def _times(times: Iterator[int]) -> array[int]:
    try:
        found = array("q", times)
    except OverflowError as error:
        raise SegmentDamaged("a time of the segment is out of range") from error
    if min(found) < 0 or max(found) > LATEST:
        raise SegmentDamaged("a time of the segment is out of range")
    return found
