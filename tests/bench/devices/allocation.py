"""Sequential allocations for a hundred pods: the agent's share.

Input: a redis-server. Output: figures of two times: from the commit of the request until the allocation is read from
the log, with the real kernel and its two commits, excluding the time in which the plugin answers; and the CPU time of
deciding and folding.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from random import Random
from typing import Any

from chronolet.devices import signals
from chronolet.devices.decider import DECIDER
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec, devices, pod, registry
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Shard
from tests.bench.devices import node
from tests.bench.figures import Figure
from tests.bench.kernel.child import Writer
from tests.support.redis.server import PrivateRedis

NODE = "devices"
PODS = 100
_LISTED = registry.type_of(devices.DevicesListed)
_ALLOCATED = registry.type_of(devices.DevicesAllocated)


def figures(server: PrivateRedis, locks: Path, quick: bool) -> list[Figure]:
    """Measure both times with the same numbers of devices; return their medians, and the maximum of the first."""
    counts = [Random(7).randint(1, 8) for _ in range(PODS)]
    whole = [
        seconds for number in range(1 if quick else 5) for seconds in _whole(server, locks, f"{NODE}{number}", counts)
    ]
    decided = _decided(counts)
    return [
        Figure(
            name="our own part of an allocation, median",
            ours=statistics.median(whole) * 1000,
            unit="ms",
            goal=5.0,
            note=f"{node.DEVICES:,} devices, {PODS} pods that ask for one to eight each: from the request's being in"
            " the log to the allocation's, read back; two commits with their fsyncs, the effect's thread; the plugin's"
            " RPC is taken off",
        ),
        Figure(name="the slowest of them", ours=max(whole) * 1000, unit="ms"),
        Figure(
            name="deciding and folding an allocation, median (CPU)",
            ours=statistics.median(decided) * 1000,
            unit="ms",
            goal=5.0,
            note="both decisions of it, with what is to run and when to wake",
        ),
    ]


def _whole(server: PrivateRedis, locks: Path, name: str, counts: list[int]) -> list[float]:
    store = RedisStore(server.url, name)
    node.begin(store, name)
    writer, plugin = Writer(store, Shard("pod")), node.Plugin()
    found = []
    with node.hosted(server.url, name, plugin.kind(), locks / name):
        at = _next(store, Position(0, 0), _LISTED)[0]
        for number, count in enumerate(counts):
            request = node.record(f"pod/default/p{number}", node.request(f"p{number}", count), writer.actor)
            writer.commit([request])
            began = time.perf_counter()
            at, data = _next(store, at, _ALLOCATED)
            found.append(time.perf_counter() - began - plugin.calls[-1])
            assert len(data["allocation"]["devices"]) == count
        assert len(plugin.calls) == len(counts)
    store.close()
    return found


def _next(store: RedisStore, after: Position, type_: str) -> tuple[Position, dict[str, Any]]:
    """Wait for the first entry of type `type_` after `after`; return its position and data. Raises TimeoutError after
    30 seconds.
    """
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for entry in store.wait(after, {}, 100, 1_000).log:
            after = entry.position
            if entry.type == type_:
                return after, codec.msgspec.msgpack.decode(entry.data)
    raise TimeoutError(f"no {type_} after {after}")


def _decided(counts: list[int]) -> list[float]:
    state = DECIDER.initial
    generation = 1

    def decide(message: Any) -> float:
        nonlocal state
        began = time.thread_time()
        for event in DECIDER.decide(state, message, 1_000):
            state = DECIDER.evolve(state, event) or DECIDER.initial
        DECIDER.outstanding(state)
        DECIDER.due(state)
        return time.thread_time() - began

    decide(node.registering())
    decide(signals.DevicesListing(resource=node.GPU, generation=generation, devices=node.listing()))
    found = []
    for number, count in enumerate(counts):
        spent = decide(node.request(f"p{number}", count))
        claim = state.claims[f"p{number}/app"]
        about = {"subject": f"claim/{claim.id}", "intent": f"allocating/{claim.serial}"}
        found.append(spent + decide(signals.AllocateAnswered(**about, answers=(node.ANSWER,))))  # type: ignore[arg-type]
    assert sum(len(one.held[node.GPU].devices) for one in state.claims.values()) == sum(counts)
    decide(pod.PodEnded(pod="default/p0", uid="p0"))
    return found
