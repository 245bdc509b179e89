"""How soon another process acts in place of an owner that was killed, stopped cleanly or drained.

Input: options. Output: the time from the kill, signal or drain to the first effect of the new owner, while commands
keep arriving. A killed owner is proven dead by its free lock on the same machine; elsewhere, the lease must end first.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from chronolet.kernel.ownership.lease import TTL_MILLISECONDS
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas.keys import Shard
from tests.bench.figures import Figure
from tests.bench.kernel.child import Child, begin
from tests.bench.split.jobs import Lines, send
from tests.support.redis.server import private_redis
from tests.support.scratch import wait_until

NODE = "takeover"
SHARD = Shard("job")
_PAUSE_SECONDS = 0.01
LEASE_GOAL_SECONDS = TTL_MILLISECONDS / 1000 + 0.5
HANDOVER_GOAL_SECONDS = 0.2


class Pair:
    """Two processes that can host the same shard, on one machine or, with `apart`, as if on two machines."""

    def __init__(self, url: str, locks: Path, *, apart: bool) -> None:
        self.store = RedisStore(url, NODE)
        self.lines = Lines()
        self._url = url
        self._locks = locks
        self._apart = apart
        self.children: dict[str, Child] = {}

    def start(self, name: str) -> None:
        """Start the process, and wait until it takes part."""
        locks = self._locks / name if self._apart else self._locks
        child = self.children[name] = Child(self._url, NODE, ("job",), locks, name)
        child.running()
        self.lines.follow(child)
        wait_until(lambda: self.owner() != "", "an owner")

    def owner(self) -> str:
        return self.store.heads([SHARD])[SHARD].token.partition(":")[2]

    def first_act(self, name: str, since: int) -> float:
        """Return the seconds from `since` to this process's first effect afterwards."""
        while True:
            found, _, at = self.lines.next()
            if found == name and at > since:
                return (at - since) / 1e9


def _kill(pair: Pair, name: str) -> None:
    pair.children[name].process.kill()


def _term(pair: Pair, name: str) -> None:
    pair.children[name].process.terminate()


def _drain(pair: Pair, name: str) -> None:
    pair.store.drain(name, drains=True)


def _restart(pair: Pair, name: str) -> None:
    pair.children[name].process.wait()
    pair.start(name)


def _undrain(pair: Pair, name: str) -> None:
    pair.store.drain(name, drains=False)


def figures(*, quick: bool) -> list[Figure]:
    """Measure takeovers after each kind of end, on one machine and as if on two."""
    rounds = 3 if quick else 20
    cases: list[tuple[str, bool, Callable[[Pair, str], None], Callable[[Pair, str], None], float]] = [
        ("kill -9, on one machine", False, _kill, _restart, LEASE_GOAL_SECONDS),
        ("kill -9, on another machine", True, _kill, _restart, LEASE_GOAL_SECONDS),
        ("SIGTERM", False, _term, _restart, HANDOVER_GOAL_SECONDS),
        ("drain", False, _drain, _undrain, HANDOVER_GOAL_SECONDS),
    ]
    found = []
    for name, apart, end, mend, goal in cases:
        with _pair(apart=apart) as pair:
            times = sorted(_measured(pair, end, mend) for _ in range(rounds))
        shown = f"median {statistics.median(times):.2f} s of {rounds}"
        found.append(
            Figure(name=f"{name}: the new owner acts, longest", ours=times[-1], unit="s", goal=goal, note=shown)
        )
    return found


def _measured(pair: Pair, end: Callable[[Pair, str], None], mend: Callable[[Pair, str], None]) -> float:
    former = pair.owner()
    successor = next(name for name in pair.children if name != former)
    for _ in pair.lines.drained():
        pass
    since = time.monotonic_ns()
    end(pair, former)
    took = pair.first_act(successor, since)
    mend(pair, former)
    # The returning process may get the shard again. The pause differs, so that the next end comes at any time between
    # two renewals.
    time.sleep(1.5 + random.random())
    return took


@contextmanager
def _pair(*, apart: bool) -> Iterator[Pair]:
    """Run two processes, and send a command every ten milliseconds."""
    with ExitStack() as stack:
        server = stack.enter_context(private_redis(appendfsync="everysec"))
        pair = Pair(server.url, server.folder / "locks", apart=apart)
        stack.callback(pair.store.close)
        begin(pair.store, NODE)
        stack.callback(lambda: [child.kill() for child in pair.children.values()])
        for name in ("a", "b"):
            pair.start(name)
        stopped = threading.Event()
        feeder = threading.Thread(target=_feed, args=(server.url, stopped), name="feeder", daemon=True)
        feeder.start()
        stack.callback(feeder.join)
        stack.callback(stopped.set)
        yield pair


def _feed(url: str, stopped: threading.Event) -> None:
    store = RedisStore(url, NODE)
    while not stopped.wait(_PAUSE_SECONDS):
        send(store, 1)
    store.close()
