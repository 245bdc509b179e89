"""Raw outcomes on their way to the capped stream `probe_results`: once a second, all that have come meanwhile.

Comes in: `RawResult`. Goes out: stream entries, in order. Next: `describe`, people with redis-cli. What cannot be
written is given up and counted: the stream is a help, the log is the record. Where the connection breaks in the middle,
what it carried is sent again, and may stand there twice.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence

import structlog

from chronolet.adapters.probes.niceness import go_with_all
from chronolet.adapters.probes.per_probe import PerProbe, Who
from chronolet.kernel.storage.redis.connection import Address, Channel, Command
from chronolet.kernel.storage.redis.errors import ResponseError
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet_schemas.keys import Keys
from chronolet_schemas.prober import RawResult

log = structlog.get_logger("chronolet.probes")

OF_EACH = 80
"""So many of each probe are kept, however often the others are at work."""
MOST_ENTRIES = 32_000
"""Of all probes, those that are gone included: room for 400. Redis drops whole nodes of a stream, so a few more may be
there.
"""
OUTPUT_LIMIT = 1024
"""How many characters of an output are kept: what a KubeEvent's message may have."""

_FLUSH_SECONDS = 1.0
_TIMEOUT_SECONDS = 5.0
_MOST_WAITING = 10_000
_READ_AT_ONCE = 1_000


class RedisResults:
    """`prober.outside.Results`. Its thread starts with the first outcome."""

    def __init__(
        self,
        url: str,
        node: str,
        lost: Callable[[int], None] = lambda _: None,
        *,
        of_each: int = OF_EACH,
        most_entries: int = MOST_ENTRIES,
    ) -> None:
        """`lost` is told how many were given up, on any thread."""
        self._channel = Channel(Address(url), _TIMEOUT_SECONDS)
        self._key = Keys(node).probe_results
        self._head: Command = ("XADD", self._key, "MAXLEN", "~", most_entries, "*")
        self._of_each = of_each
        self._kept: PerProbe | None = None
        """None before it is known what the stream holds."""
        self._waiting: deque[RawResult] = deque()
        self._tell_lost = lost
        self._lost = 0
        self._stopped = threading.Event()
        self._some = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, result: RawResult) -> None:
        """See `Results`. The oldest makes room where too many wait."""
        self._waiting.append(result)
        if len(self._waiting) > _MOST_WAITING:
            with contextlib.suppress(IndexError):  # they are being written at this moment
                self._waiting.popleft()
                self._tell_lost(1)
        if not self._some.is_set():
            self._some.set()
            self._start()

    def stop(self) -> None:
        """Write what waits, if that is quickly done, and end."""
        self._stopped.set()
        self._some.set()
        if self._thread is not None:
            self._thread.join()
        self._channel.disconnect()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopped.is_set():
                thread = threading.Thread(target=self._run, name="probe results", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:  # no more threads, or no memory for one: the next outcome asks again
                    self._some.clear()
                    log.warning("outcomes of probes wait", error=str(error))
                else:
                    self._thread = thread

    def _run(self) -> None:
        go_with_all()  # its first outcome comes from the probes' thread
        while not self._stopped.is_set():
            self._some.wait()
            self._stopped.wait(_FLUSH_SECONDS)
            self._some.clear()
            self._flush()
        self._flush()  # what has come during the last one

    def _flush(self) -> None:
        results: list[RawResult] = []
        with contextlib.suppress(IndexError):  # none is left; `add` may take one away at the same time
            while len(results) < _MOST_WAITING:
                results.append(self._waiting.popleft())
        if not results:
            return
        try:
            self._write(results)
        except (StoreUnreachable, StoreBroken, ResponseError) as error:
            if not self._lost:
                log.warning("outcomes of probes are not written", error=str(error))
            self._lost += len(results)
            self._tell_lost(len(results))
        else:
            if self._lost:
                log.info("outcomes of probes are written again", lost=self._lost)
            self._lost = 0

    def _write(self, results: Sequence[RawResult]) -> None:
        """In one round trip, with the end of those that have become too many by the last one."""
        kept = self._kept = self._kept or self._found()
        too_many = kept.too_many()
        deletes: list[Command] = [("XDEL", self._key, *too_many)] if too_many else []
        adds: list[Command] = [(*self._head, *_fields(one)) for one in results]
        replies = self._channel.calls([*deletes, *adds])
        kept.deleted()
        for one, entry_id in zip(results, replies[len(deletes) :], strict=True):
            kept.added((one.pod.encode(), one.container.encode(), one.probe.encode()), entry_id)

    def _found(self) -> PerProbe:
        """What processes before this one have left."""
        found, start = PerProbe(self._of_each), "-"
        while entries := self._channel.call("XRANGE", self._key, start, "+", "COUNT", _READ_AT_ONCE):
            for entry_id, fields in entries:
                found.added(_who(fields), entry_id)
            start = f"({entries[-1][0].decode()}"
        return found


def _who(fields: Sequence[bytes]) -> Who:
    """Of somebody else's entries, nobody."""
    named = dict(zip(fields[::2], fields[1::2], strict=True))
    return tuple(named.get(name, b"") for name in (b"pod", b"container", b"probe"))


def _fields(result: RawResult) -> Sequence[str]:
    pairs: list[str] = []
    for name in result.__struct_fields__:
        pairs += (name, getattr(result, name)[:OUTPUT_LIMIT])  # none but the output can be so long
    return pairs
