"""A process that hosts kube_events under a flood of events, which are recorded by real steps, correlated, and delivered
to the Redis stream.

Input: options. Output: events per second from the first record until all are correlated, the log entries that each
event costs, and the size of the process.
"""

from __future__ import annotations

import time
from pathlib import Path

from chronolet_schemas.envelope import START
from tests.bench.figures import Figure
from tests.integration.kube_events.support import Events, node, recorded
from tests.support import scratch
from tests.support.redis.server import private_redis

_AT_ONCE = 100
MOST_GROWTH = 96.0
"""Maximum growth in MiB: several times the size of ten thousand waiting posts and three caches of 4096 entries."""


def figures(quick: bool) -> list[Figure]:
    """Measure a flood about as many objects as there are events, which is the most work, then one about a single
    object.
    """
    count = 20_000 if quick else 100_000
    return [*_flood(count, "as many pods", distinct=True), *_flood(count, "one pod", distinct=False)]


def _flood(count: int, name: str, *, distinct: bool) -> list[Figure]:
    with private_redis() as server, node(server, server.folder / "agent") as events:
        events.start()
        events.record(recorded(0))
        events.wait_settled("redis")
        small = _resident(events, "VmRSS")
        began = time.monotonic()
        for begin in range(1, count, _AT_ONCE):
            events.record(*(recorded(number if distinct else 1) for number in range(begin, begin + _AT_ONCE)))
        written = time.monotonic() - began
        # `_is_heard` sleeps between checks, so that they do not slow down the server.
        scratch.wait_until(lambda: _is_heard(events), "the correlation", 300)
        correlated = time.monotonic() - began
        events.wait_settled("redis", seconds=300)
        found = events.balance("redis")
        own = sum(1 for entry in events.store.scan(START) if entry.entity.startswith("kube_events/"))
        assert found["heard"] == events.count == found["suppressed"] + found["delivered"] + found["given up"]
        return [
            Figure(
                name=f"flood, {name}: recorded and correlated",
                ours=events.count / correlated,
                unit="/s",
                note=f"{events.count:,} recorded in {written:.1f} s by one writer; {found['suppressed']:,} kept back,"
                f" {found['delivered']:,} delivered, {found['given up']:,} given up",
            ),
            Figure(
                name=f"flood, {name}: entries of kube_events for each recorded",
                ours=own / events.count,
                unit="",
                goal=0.1,
            ),
            Figure(
                name=f"flood, {name}: resident memory at most",
                ours=_resident(events, "VmHWM"),
                unit="MiB",
                goal=small + MOST_GROWTH,
                note=f"{small:.0f} MiB before",
            ),
        ]


def _is_heard(events: Events) -> bool:
    time.sleep(0.05)
    heads = events.store.heads((events.shard,))
    return heads[events.shard].log_cursor.n >= events.last.n


def _resident(events: Events, field: str) -> float:
    status = Path(f"/proc/{events.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(f"{field}:")).split()[1]) / 1024
