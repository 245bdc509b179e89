"""What a process decodes of entries that concern only other kinds.

Input: options. Output: the number of entries that a process of two kinds has decoded, next to those that others wrote.
"""

from __future__ import annotations

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas.keys import Shard
from tests.bench.figures import Figure
from tests.bench.kernel import gauge
from tests.bench.kernel.child import Writer, begin, hosting
from tests.bench.split.jobs import send
from tests.support.redis.server import private_redis

NODE = "decoding"
STEPS, IN_STEP = 20, 100


def figures(*, quick: bool) -> list[Figure]:
    """Write entries of a kind to which the process does not subscribe, then one command that it executes."""
    with private_redis() as server:
        store = RedisStore(server.url, NODE)
        begin(store, NODE)
        writer = Writer(store, Shard("ear"))
        with hosting(server.url, NODE, ("gauge", "job"), server.folder / "locks") as child:
            steps = STEPS // 10 if quick else STEPS
            for _ in range(steps):
                writer.commit([gauge.record(gauge.measured(number), number, writer.actor) for number in range(IN_STEP)])
            number = send(store, 1)
            assert child.line()[0] == number
            child.process.terminate()
            word, decoded = child.line()
            assert word == "decoded"
        store.close()
    return [
        Figure(
            name="entries of other kinds decoded by a process of two kinds",
            ours=max(0, decoded - 1),
            unit=f"of {steps * IN_STEP}",
            goal=0,
            note="its own command, which it decodes, does not count",
        )
    ]
