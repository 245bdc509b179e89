"""How many messages two processes carry next to Redis, compared with one, and what a step costs each part.

Input: options. Output: messages and steps per second. The processes are stopped while their backlog is sent, so that
the sender does not compete with them for the processors.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas.keys import shards_of
from tests.bench.figures import Figure
from tests.bench.kernel import gauge
from tests.bench.kernel.child import Child, begin
from tests.bench.kernel.idle import cpu_seconds
from tests.bench.split.jobs import Lines, send
from tests.support.machine.frozen import stopped
from tests.support.redis.server import private_redis
from tests.support.scratch import wait_until

NODE = "carrying"
SHARDS = 4
BACKLOG = 4000
GOAL = 1.4


class Carried(NamedTuple):
    """One backlog: seconds until its last effect, steps, and the CPU seconds of the processes and of Redis."""

    seconds: float
    steps: int
    cpu: float
    server_cpu: float


def figures(*, quick: bool) -> list[Figure]:
    """Measure one and two processes."""
    rounds = 2 if quick else 7
    one, two = (_carry(names, rounds) for names in (("a",), ("a", "b")))
    rate, alone = (BACKLOG / statistics.median(found.seconds for found in runs) for runs in (two, one))
    return [
        Figure(
            name="messages carried by two processes next to Redis",
            ours=rate,
            unit="messages/s",
            reference=alone,
            reference_name="messages/s of one",
            goal=GOAL,
            bound="at least",
            note=f"{SHARDS} shards; each message becomes an event, an effect, and the event of its result",
        ),
        *(_steps(name, runs) for name, runs in (("one process", one), ("two processes", two))),
    ]


def _steps(name: str, runs: Sequence[Carried]) -> Figure:
    steps = sum(one.steps for one in runs)
    ours, server = (1e3 * sum(part) / steps for part in ([one.cpu for one in runs], [one.server_cpu for one in runs]))
    return Figure(
        name=f"steps of {name}",
        ours=steps / sum(one.seconds for one in runs),
        unit="steps/s",
        note=f"CPU time of a step: {ours:.2f} ms in the process, {server:.2f} ms in Redis; "
        f"{BACKLOG * len(runs) / steps:.1f} messages a step",
    )


def _carry(names: Sequence[str], rounds: int) -> list[Carried]:
    with ExitStack() as stack:
        server = stack.enter_context(private_redis(appendfsync="everysec"))
        store = RedisStore(server.url, NODE)
        stack.callback(store.close)
        begin(store, NODE, gauge.SHARDS | {"job": SHARDS})
        lines, children = Lines(), []
        for name in names:
            child = Child(server.url, NODE, ("job",), server.folder / "locks", name)
            stack.callback(child.kill)
            child.running()
            lines.follow(child)
            children.append(child)
        wait_until(lambda: _owners(store) == sorted(names * (SHARDS // len(names))), "an even share")
        return [_carried(store, lines, children, server.pid) for _ in range(rounds)]


def _owners(store: RedisStore) -> list[str]:
    return sorted(head.token.partition(":")[2] for head in store.heads(shards_of("job", SHARDS)).values())


def _carried(store: RedisStore, lines: Lines, children: Sequence[Child], server: int) -> Carried:
    pids = [child.pid for child in children]
    before, steps = [cpu_seconds(pid) for pid in (*pids, server)], _steps_so_far(store)
    with stopped(pids):
        sent = {send(store, SHARDS) for _ in range(BACKLOG)}
        before[-1] = cpu_seconds(server)
    found = [lines.next() for _ in range(BACKLOG)]
    assert {word for _, word, _ in found} == sent, "each command's effect ran, once"
    after = [cpu_seconds(pid) for pid in (*pids, server)]
    spent = [late - early for late, early in zip(after, before, strict=True)]
    times = [at for _, _, at in found]
    return Carried((max(times) - min(times)) / 1e9, _steps_so_far(store) - steps, sum(spent[:-1]), spent[-1])


def _steps_so_far(store: RedisStore) -> int:
    return sum(head.version for head in store.heads(shards_of("job", SHARDS)).values())
