"""Write raw outcomes to the capped stream `probe_results`, in batches, once a second, and to the stream of segments.

Input: `RawResult`. Output: stream entries, in order. Next: `describe`, people with redis-cli; `segment_writer`, which
uses the same thread and connection. Outcomes that cannot be written are dropped and counted: the stream is only a
convenience, the log and the segments are the record. If the connection breaks during a write, the batch is sent again,
so its entries may appear twice.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence

import structlog

from chronolet.adapters.probes.results.per_probe import PerProbe, ProbeKey
from chronolet.adapters.probes.results.segment_writer import SEGMENT_SECONDS, SegmentWriter
from chronolet.adapters.probes.scheduling.thread_priority import reset_priority
from chronolet.kernel.storage.redis.connection import Address, Channel, Command
from chronolet.kernel.storage.redis.errors import ResponseError
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet.rules.probes.segments.segment import Lost, joined
from chronolet_schemas.keys import Keys
from chronolet_schemas.prober import RawResult

log = structlog.get_logger("chronolet.probes")

OF_EACH = 80
"""Number of entries kept per probe, no matter how many entries other probes add."""
MOST_ENTRIES = 32_000
"""Maximum number of entries in the stream, including those of removed probes: enough for 400 probes. Redis trims whole
nodes of a stream, so there may be a few more entries.
"""
OUTPUT_LIMIT = 1024
"""Maximum length of an output in characters: the limit for a KubeEvent's message."""

_MOST_WAITING = 10_000
_PAGE_SIZE = 1_000


class RedisResults:
    """Implements `prober.workers.dependencies.Results`. Its thread starts with the first outcome."""

    def __init__(
        self,
        url: str,
        node: str,
        lost: Callable[[int], None] = lambda _: None,
        *,
        process: Callable[[], str] = lambda: "",
        of_each: int = OF_EACH,
        most_entries: int = MOST_ENTRIES,
        flush_seconds: float = 1.0,
        segment_seconds: float = SEGMENT_SECONDS,
        timeout_seconds: float = 5.0,
    ) -> None:
        """`lost` is called with the number of dropped outcomes, on any thread. `process` returns the name of this
        process. `flush_seconds`: how long outcomes are collected before they are written; `segment_seconds`: the same
        for segments. `timeout_seconds`: how long the server may take to reply.
        """
        self._flush_seconds = flush_seconds
        self._channel = Channel(Address(url), timeout_seconds)
        self._key = Keys(node).probe_results
        self._head: Command = ("XADD", self._key, "MAXLEN", "~", most_entries, "*")
        self._of_each = of_each
        self._kept: PerProbe | None = None
        """None until the content of the stream has been read."""
        self._waiting: deque[RawResult] = deque()
        self._segments = SegmentWriter(node, process, seconds=segment_seconds)
        self._on_lost = lost
        self._lost = 0
        self._dropped: Lost | None = None
        """Outcomes that `add` has dropped since the last flush."""
        self._stopped = threading.Event()
        self._has_results = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, result: RawResult) -> None:
        """See `Results`. If too many outcomes are waiting, the oldest one is dropped."""
        self._waiting.append(result)
        if len(self._waiting) > _MOST_WAITING:
            with contextlib.suppress(IndexError):  # the queue is empty: the outcomes are being written
                at = int(self._waiting.popleft().at)
                with self._lock:
                    self._dropped = joined(self._dropped, Lost(at, at, 1))
                self._on_lost(1)
        if not self._has_results.is_set():
            self._has_results.set()
            self._start()

    def stop(self) -> None:
        """Write the pending outcomes, unless the server takes too long, and end the thread."""
        self._stopped.set()
        self._has_results.set()
        if self._thread is not None:
            self._thread.join()
        self._channel.disconnect()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopped.is_set():
                thread = threading.Thread(target=self._run, name="probe results", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:  # out of threads or memory: retried with the next outcome
                    self._has_results.clear()
                    log.warning("cannot start the writer of probe outcomes; retrying", error=str(error))
                else:
                    self._thread = thread

    def _run(self) -> None:
        reset_priority()  # the probe thread, whose priority is raised, started this one
        while not self._stopped.is_set():
            self._has_results.wait(self._segments.due_in)
            self._stopped.wait(self._flush_seconds)
            self._has_results.clear()
            if self._flush():
                self._segments.write(self._channel)
        if self._flush():  # outcomes that arrived during the last flush
            self._segments.end(self._channel)

    def _flush(self) -> bool:
        """Write the pending outcomes, after adding them to the segment. Return False if the server is unreachable: then
        it would not take a segment either.
        """
        results: list[RawResult] = []
        with contextlib.suppress(IndexError):  # the queue is empty; `add` may remove outcomes concurrently
            while len(results) < _MOST_WAITING:
                results.append(self._waiting.popleft())
        with self._lock:
            dropped, self._dropped = self._dropped, None
        if dropped is not None:
            self._segments.drop(dropped)
        for one in results:
            self._segments.take(one)
        if not results:
            return True
        try:
            self._write(results)
        except (StoreUnreachable, StoreBroken, ResponseError) as error:
            if not self._lost:
                log.warning("cannot write probe outcomes; dropping them", error=str(error))
            self._lost += len(results)
            self._on_lost(len(results))
            return not isinstance(error, StoreUnreachable)
        if self._lost:
            log.info("writing probe outcomes again", lost=self._lost)
        self._lost = 0
        return True

    def _write(self, results: Sequence[RawResult]) -> None:
        """Write the outcomes in one round trip, which also deletes excess entries from the previous write."""
        kept = self._kept = self._kept or self._found()
        too_many = kept.too_many()
        deletes: list[Command] = [("XDEL", self._key, *too_many)] if too_many else []
        adds: list[Command] = [(*self._head, *_fields(one)) for one in results]
        replies = self._channel.calls([*deletes, *adds])
        kept.deleted()
        for one, entry_id in zip(results, replies[len(deletes) :], strict=True):
            kept.added((one.pod.encode(), one.container.encode(), one.probe.encode()), entry_id)

    def _found(self) -> PerProbe:
        """Return the entries of each probe that are already in the stream, written by earlier processes."""
        found, start = PerProbe(self._of_each), "-"
        while entries := self._channel.call("XRANGE", self._key, start, "+", "COUNT", _PAGE_SIZE):
            for entry_id, fields in entries:
                found.added(_probe_key(fields), entry_id)
            start = f"({entries[-1][0].decode()}"
        return found


def _probe_key(fields: Sequence[bytes]) -> ProbeKey:
    """Return the key of the probe to which an entry belongs. Its parts are empty for an entry that something else
    wrote.
    """
    named = dict(zip(fields[::2], fields[1::2], strict=True))
    return tuple(named.get(name, b"") for name in (b"pod", b"container", b"probe"))


def _fields(result: RawResult) -> Sequence[str]:
    pairs: list[str] = []
    for name in result.__struct_fields__:
        pairs += (name, getattr(result, name)[:OUTPUT_LIMIT])  # only `output` can exceed the limit
    return pairs
