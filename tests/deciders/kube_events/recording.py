"""KubeEvents, batches of KubeEvents, and scenes, for the tests of kube_events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chronolet.kube_events import signals
from chronolet.kube_events.decider import decider
from chronolet.kube_events.policy import Policy, Rules
from chronolet.kube_events.state import Cache, Caches
from chronolet_schemas import kube_events
from chronolet_schemas.envelope import Position
from chronolet_schemas.times import Stamp
from tests.deciders.given import Scene, given

T0 = 1_700_000_000_000


def recorded(name: str = "web", message: str = "again", **fields: Any) -> kube_events.Recorded:
    known = {"object_kind": "Pod", "namespace": "shop", "severity": "Warning", "reason": "BackOff"}
    return kube_events.Recorded(name=name, message=message, **{**known, **fields})


def batch(*events: kube_events.Recorded, number: int = 1, after: int = 0) -> signals.RecordedBatch:
    """Return a batch of consecutive entries, the first with number `number`, `after` milliseconds after T0."""
    time = T0 + after
    return signals.batch([(Stamp(Position(time, number + index), time), event) for index, event in enumerate(events)])


def several(count: int, *, begin: int = 0) -> list[kube_events.Recorded]:
    """Return KubeEvents about different objects: each of them becomes a separate post."""
    return [recorded(name=f"web-{number}") for number in range(begin, begin + count)]


def scene(*sinks: str, **rules: int) -> Scene:
    """Create a scene on a node with these sinks; `rules` are the same for each sink."""
    return given(decider(Policy(sinks=dict.fromkeys(sinks, Rules(**rules)))))


def caches_of(size: int) -> Caches:
    """Return empty caches with this capacity."""
    return Caches(known=Cache(size=size), similar=Cache(size=size), tokens=Cache(size=size))


def in_order(cache: Cache[Any]) -> list[tuple[str, Any]]:
    """Return the entries, oldest first, after checking the bookkeeping."""
    turns = sorted(cache.order)
    assert all(cache.oldest <= turn < cache.next for turn in turns)
    assert {turn: key for key, (turn, _) in cache.entries.items()} == dict(cache.order)
    return [(cache.order[turn], cache.entries[cache.order[turn]][1]) for turn in turns]


def count(events: Iterable[Any], kind: type[Any]) -> int:
    return sum(isinstance(event, kind) for event in events)
