"""Commands to the kind `job`, and the lines that its effects write in the processes that host it.

Input: a store, processes. Output: sent commands; each process's lines as they arrive.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterator

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec, registry
from chronolet_schemas.keys import shard_for
from tests.bench.kernel import gauge
from tests.bench.kernel.child import Child

_numbers = itertools.count()


def send(store: RedisStore, shards: int) -> str:
    """Send one command to the shard that owns its job; return the job's number, which its effect writes."""
    number = next(_numbers)
    command = gauge.Run(request=f"request-{number}", number=number)
    shard = shard_for("job", shards, str(number))
    answer = store.send(shard, registry.type_of(gauge.Run), f"job/{number}", command.request, codec.encode(command))
    assert answer == "sent", answer
    return str(number)


class Lines:
    """The lines of several processes, read by a thread per process, so that none of them waits for its reader."""

    def __init__(self) -> None:
        self._arrived: queue.Queue[tuple[str, str, int]] = queue.Queue()

    def follow(self, child: Child) -> None:
        """Read this process's lines until it ends."""
        threading.Thread(target=self._read, args=(child,), name="lines", daemon=True).start()

    def next(self, seconds: float = 30.0) -> tuple[str, str, int]:
        """Return the next line: the process's name, the word, and the time (monotonic, nanoseconds). Raises queue.Empty
        if there is none in time.
        """
        return self._arrived.get(timeout=seconds)

    def drained(self) -> Iterator[tuple[str, str, int]]:
        """Return the lines that have already arrived."""
        while not self._arrived.empty():
            yield self._arrived.get()

    def _read(self, child: Child) -> None:
        try:
            while True:
                word, at = child.line()
                self._arrived.put((child.name, word, at))
        except (EOFError, ValueError):  # it has ended, or its pipe was closed
            return
