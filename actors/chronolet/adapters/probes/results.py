"""Raw outcomes on their way to the capped stream `probe_results`: once a second, all that have come meanwhile.

Comes in: `RawResult`. Goes out: stream entries, in order. Next: `describe`, people with redis-cli. What cannot be
written is given up and counted: the stream is a help, the log is the record.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

import redis
import structlog

from chronolet.adapters.probes.niceness import go_with_all
from chronolet.kernel.redis_connection import Address, Channel
from chronolet.kernel.store import StoreBroken, StoreUnreachable
from chronolet_schemas.keys import Keys
from chronolet_schemas.prober import RawResult

log = structlog.get_logger("chronolet.probes")

MOST_ENTRIES = 20_000
"""About a minute of 330 probes a second. Redis drops whole nodes of a stream, so a few more may be there."""
OUTPUT_LIMIT = 1024
"""How many characters of an output are kept: what a KubeEvent's message may have."""

_FLUSH_SECONDS = 1.0
_TIMEOUT_SECONDS = 5.0
_MOST_WAITING = 10_000


class RedisResults:
    """`prober.outside.Results`. Its thread starts with the first outcome."""

    def __init__(self, url: str, node: str, *, most_entries: int = MOST_ENTRIES) -> None:
        self._channel = Channel(Address(url), _TIMEOUT_SECONDS)
        self._head = ("XADD", Keys(node).probe_results, "MAXLEN", "~", most_entries, "*")
        self._waiting: deque[RawResult] = deque(maxlen=_MOST_WAITING)
        self._lost = 0
        self._stopped = threading.Event()
        self._some = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, result: RawResult) -> None:
        """See `Results`. The oldest makes room where too many wait."""
        self._waiting.append(result)
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
            self._flush([self._waiting.popleft() for _ in range(len(self._waiting))])

    def _flush(self, results: Sequence[RawResult]) -> None:
        if not results:
            return
        try:
            self._channel.calls([(*self._head, *_fields(one)) for one in results])
        except (StoreUnreachable, StoreBroken, redis.ResponseError) as error:
            if not self._lost:
                log.warning("outcomes of probes are not written", error=str(error))
            self._lost += len(results)
        else:
            if self._lost:
                log.info("outcomes of probes are written again", lost=self._lost)
            self._lost = 0


def _fields(result: RawResult) -> Sequence[str]:
    pairs: list[str] = []
    for name in result.__struct_fields__:
        pairs += (name, getattr(result, name)[:OUTPUT_LIMIT])  # none but the output can be so long
    return pairs
