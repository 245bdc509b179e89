"""Collects the outcomes of a process until they are a segment. Pure: the caller gives the time.

Input: raw outcomes, in the order of their ends; outcomes that were dropped. Output: `Segment`s, numbered from 1. Next:
`adapters.probes.results`, which writes them.
"""

from __future__ import annotations

from array import array

from chronolet.rules.probes.segments.segment import Lost, ProbeKey, Run, Segment, duration_code, joined
from chronolet_schemas.prober import RawResult

ID_CHARACTERS = 12
"""How much of a container's id a segment has: as much as Docker prints. With the pod's uid it is unique."""

_PROBE_BYTES = 150
_OUTCOME_BYTES = 2


class Recorder:
    """The open segment of one process. Not thread-safe.

    `started`: when the process began to record, in milliseconds since the epoch. `output_limit`: outputs are cut to
    this number of characters.
    """

    def __init__(self, started: int, output_limit: int) -> None:
        self._started = started
        self._output_limit = output_limit
        self._closed = 0
        self._before = 0
        self._begin: int | None = None
        self._lost: Lost | None = None
        self._runs: dict[ProbeKey, list[Run]] = {}
        self.size = 0
        """About how many bytes the open segment has before it is compressed."""

    @property
    def is_open(self) -> bool:
        """Whether there are outcomes to write."""
        return self._begin is not None

    @property
    def has_written(self) -> bool:
        """Whether a segment has been closed."""
        return self._closed > 0

    def take(self, result: RawResult, now: int) -> None:
        """Add an outcome; `now` is in milliseconds since the epoch."""
        if self._begin is None:
            self._begin = now
        key = _key(result)
        runs = self._runs.get(key)
        if runs is None:
            runs = self._runs[key] = []
            self.size += _PROBE_BYTES
        run = self._run(result)
        if runs and runs[-1].continues(run):
            runs[-1].extend(run)
        else:
            runs.append(run)
            self.size += len(run.output)
        self.size += _OUTCOME_BYTES

    def drop(self, lost: Lost) -> None:
        """Record that outcomes were dropped. This alone opens no segment: the next one that is closed has it."""
        self._lost = joined(self._lost, lost)

    def close(self, process: str, now: int, *, ended: bool = False) -> Segment:
        """Return the open segment, which may be empty, and begin the next one with the next outcome."""
        self._closed += 1
        segment = Segment(
            process=process,
            started=self._started,
            number=self._closed,
            upto=self._closed,
            begin=now if self._begin is None else self._begin,
            end=now,
            before=self._before,
            lost=self._lost,
            ended=ended,
            runs=self._runs,
        )
        self._before += segment.outcomes
        self._begin, self._lost, self._runs, self.size = None, None, {}, 0
        return segment

    def _run(self, result: RawResult) -> Run:
        return Run(
            result.outcome,
            result.code,
            _encodable(result.output[: self._output_limit]),
            array("q", (int(result.at),)),
            bytearray((duration_code(int(result.milliseconds)),)),
        )


def _key(result: RawResult) -> ProbeKey:
    return ProbeKey(
        result.pod, result.uid, result.container, int(result.attempt or 0), result.id[:ID_CHARACTERS], result.probe
    )


def _encodable(output: str) -> str:
    """Return the text without lone surrogates, which UTF-8 does not have."""
    return output if output.isascii() else output.encode(errors="replace").decode()
