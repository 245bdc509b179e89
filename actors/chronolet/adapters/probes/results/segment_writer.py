"""Writes the raw outcomes of a process to the stream of segments: a segment each minute, or as soon as it is large.

Input: raw outcomes; outcomes that were dropped. Output: entries of the stream. Next: `segment_stream`, `keeper`. While
Redis does not accept segments, they are kept in memory, up to a limit; then the oldest are dropped. The numbers and
counts of the others show that. A segment whose reply is lost is written again: readers skip it by its number.

A kill of the process loses the open segment, and those that Redis has not accepted yet. `probe_results` still has the
newest of the open one's outcomes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import structlog

from chronolet.kernel.storage.redis.connection import Channel, Command
from chronolet.kernel.storage.redis.errors import ResponseError
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet.rules.probes.segments.encoding import encode
from chronolet.rules.probes.segments.recorder import Recorder
from chronolet.rules.probes.segments.segment import Lost
from chronolet_schemas.keys import Keys
from chronolet_schemas.prober import RawResult

log = structlog.get_logger("chronolet.probes")

SEGMENT_SECONDS = 60.0
"""The longest time that an outcome is only in the process's memory and in `probe_results`."""
SEGMENT_BYTES = 64 * 1024
"""About how many bytes a segment has before it is compressed, at most."""
MOST_ENTRIES = 3_000
"""About the maximum number of segments in the stream: two days of a process. It is reached only if no keeper archives.
It bounds Redis's memory: full segments of failures with long texts take 20 KB each, those of random texts up to 64 KiB.
"""

_MOST_PENDING = 60
_OUTPUT_LIMIT = 1024


class _Pending(NamedTuple):
    """A segment that is not written yet: its command, and the loss that it records."""

    command: Command
    lost: Lost | None


class SegmentWriter:
    """The segments of one process. Not thread-safe. `process` returns the process's name."""

    def __init__(
        self,
        node: str,
        process: Callable[[], str],
        *,
        seconds: float = SEGMENT_SECONDS,
        most_pending: int = _MOST_PENDING,
    ) -> None:
        """`seconds`: how long outcomes are collected. `most_pending`: how many segments are kept in memory."""
        self._head: Command = ("XADD", Keys(node).probe_segments, "MAXLEN", "~", MOST_ENTRIES, "*")
        self._process = process
        self._seconds = seconds
        self._most_pending = most_pending
        self._recorder = Recorder(_now(), _OUTPUT_LIMIT)
        self._opened = 0.0
        """When the open segment was opened, in seconds of `time.monotonic`."""
        self._pending: deque[_Pending] = deque()
        self._failing = False

    @property
    def due_in(self) -> float | None:
        """Seconds until a segment has to be written; None if there is none."""
        return 0.0 if self._pending else self._closes_in()

    def take(self, result: RawResult) -> None:
        """Add an outcome."""
        if not self._recorder.is_open:
            self._opened = time.monotonic()
        self._recorder.take(result, _now())
        if self._recorder.size >= SEGMENT_BYTES:
            self._close()

    def drop(self, lost: Lost) -> None:
        """Record that outcomes were dropped before they came here."""
        self._recorder.drop(lost)

    def write(self, channel: Channel) -> None:
        """Write what is due. A failure is logged, and what could not be written is kept for the next call."""
        if self._closes_in() == 0.0:
            self._close()
        try:
            while self._pending:
                channel.call(*self._pending[0].command)
                self._pending.popleft()
        except (StoreUnreachable, StoreBroken, ResponseError) as error:
            if not self._failing:
                log.warning("cannot write segments of probe outcomes; keeping some of them", error=str(error))
            self._failing = True
        else:
            if self._failing:
                log.info("writing segments of probe outcomes again")
            self._failing = False

    def end(self, channel: Channel) -> None:
        """Write everything, with a last segment that says that the process has ended in order."""
        if self._recorder.is_open or self._recorder.has_written:
            self._close(ended=True)
            self.write(channel)

    def _closes_in(self) -> float | None:
        return max(self._opened + self._seconds - time.monotonic(), 0.0) if self._recorder.is_open else None

    def _close(self, *, ended: bool = False) -> None:
        while len(self._pending) >= self._most_pending:
            lost = self._pending.popleft().lost
            if lost is not None:
                self.drop(lost)
        segment = self._recorder.close(self._process(), _now(), ended=ended)
        fields = ("process", segment.process, "outcomes", segment.outcomes, "data", encode(segment))
        self._pending.append(_Pending((*self._head, *fields), segment.lost))


def _now() -> int:
    return time.time_ns() // 1_000_000
