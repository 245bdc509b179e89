"""Recovery of the state of devices from a log of allocations and releases.

Input: a redis-server. Output: the seconds that the kernel's recovery takes, from a snapshot and the entries after it,
and without a snapshot, by folding all entries.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from chronolet.devices import signals
from chronolet.devices.actor import NODE as KEY
from chronolet.devices.decider import DECIDER
from chronolet.devices.state import State
from chronolet.kernel.log.recovery import Recovery
from chronolet.kernel.step.routing import Router
from chronolet.kernel.step.snapshots import EntityImage, encode_states
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Head, Snapshot
from chronolet_schemas import codec, pod
from chronolet_schemas.envelope import START, Entry, Event, Position, Record
from chronolet_schemas.keys import Shard
from tests.bench.devices import node
from tests.bench.figures import Figure
from tests.bench.kernel.child import Writer
from tests.support.redis.server import PrivateRedis

NODE = "replayed"
BATCH = 500
HOLDING = 100
TAIL = 9_900
"""Number of events after the snapshot: slightly fewer than the number after which the host takes the next one."""
SHARD = Shard("devices")


class History:
    """A history of allocations and releases, made with the decider while up to a hundred pods hold devices."""

    def __init__(self) -> None:
        self.state = DECIDER.initial
        self.records: list[Record] = []
        self.done = 0
        self._chance = Random(7)
        self._decide(node.registering())
        self._decide(signals.DevicesListing(resource=node.GPU, generation=1, devices=node.listing()))

    def go_on(self, upto: int) -> None:
        """Continue until `upto` allocations and releases are reached."""
        number = len(self.records)
        while self.done < upto:
            if len(self.state.pods) < HOLDING:
                self._allocate(f"{number:08x}-4b1c-4d7e-9a53-0242ac110002")
                number += 1
            else:
                uid = self._chance.choice(sorted(self.state.pods))
                self._decide(pod.PodEnded(pod=f"default/web-{uid[:8]}", uid=uid))
            self.done += 1

    def _allocate(self, uid: str) -> None:
        self._decide(node.request(uid, self._chance.randint(1, 8)))
        claim = self.state.claims[f"{uid}/app"]
        about = {"subject": f"claim/{claim.id}", "intent": f"allocating/{claim.serial}"}
        self._decide(signals.AllocateAnswered(**about, answers=(node.ANSWER,)))  # type: ignore[arg-type]

    def _decide(self, message: Any) -> None:
        for event in DECIDER.decide(self.state, message, 1_000):
            self.state = DECIDER.evolve(self.state, event) or DECIDER.initial
            self.records.append(node.record(f"devices/{KEY}", event, "devices#1"))


def figures(server: PrivateRedis, locks: Path, quick: bool) -> list[Figure]:
    """Measure recovery with and without a snapshot; return the figures."""
    wanted = 10_000 if quick else 100_000
    history = History()
    history.go_on(wanted)
    store = RedisStore(server.url, NODE)
    node.begin(store, NODE)
    writer = Writer(store, SHARD)
    kept = max(len(history.records) - TAIL, 0)
    at = START
    for begun in range(0, kept, BATCH):
        at = writer.commit(history.records[begun : min(begun + BATCH, kept)]).at
    snapshot = _state_after(history.records[:kept])
    for begun in range(kept, len(history.records), BATCH):
        last = writer.commit(history.records[begun : begun + BATCH]).at
    folded = _recover(store, last, history.state)
    image = encode_states({KEY: EntityImage(state=snapshot)})
    assert store.snapshot(SHARD, writer.token, Snapshot(position=at, format=1, state=image))
    came_back = min(_recover(store, last, history.state) for _ in range(3))
    bare = _folded(history.records)
    store.close()
    return [
        Figure(
            name=f"state rebuilt after {wanted:,} allocations and releases",
            ours=came_back,
            unit="s",
            goal=1.0,
            note=f"the kernel's own recovery, as an agent starts: a snapshot and the {TAIL:,} events behind it, of"
            f" {len(history.records):,} in all",
        ),
        Figure(name="the same without a snapshot, read from Redis and folded", ours=folded, unit="s"),
        Figure(name="the same, decoding and folding alone (CPU)", ours=bare, unit="s", goal=1.0),
    ]


def _state_after(records: list[Record]) -> State:
    state = DECIDER.initial
    for record in records:
        state = DECIDER.evolve(state, codec.decode(record.type, record.data, Event)) or DECIDER.initial
    return state


def _folded(records: list[Record]) -> float:
    began = time.thread_time()
    _state_after(records)
    return time.thread_time() - began


def _recover(store: RedisStore, upto: Position, expected: State) -> float:
    kinds = {"devices": node.Plugin().kind()}

    def history(after: Position) -> Iterator[Entry]:
        return store.scan(after, upto)

    began = time.perf_counter()
    recovery = Recovery(kinds, Router(kinds, node.SHARDS), store, history)
    head = Head(token="", version=1, step_id="", at=upto, log_cursor=upto, mail_cursor=START, attempts={}, schema=0)
    recovered = recovery.run({SHARD: ("1:bench", head)}, frozenset())[SHARD]
    spent = time.perf_counter() - began
    assert recovered.ledger.states[KEY] == expected
    return spent
