"""Runs the cases of events.json against the kube_events decider and its helpers. Deliveries are in `sink_retry`."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chronolet.kernel.decider import Decider
from chronolet.kube_events import policy, signals
from chronolet.kube_events.correlator import keys
from chronolet.kube_events.decider import decider
from chronolet.kube_events.state import CACHE_SIZE, Cache, Caches, State
from chronolet.ports.kube_sinks import api_event
from chronolet.rules.names.kube_event import event_name
from chronolet_schemas import codec, kube_events, registry
from chronolet_schemas.envelope import Event, Position
from chronolet_schemas.times import Stamp
from tests.conformance.drivers.sink_retry import sink_retry
from tests.conformance.drivers.stamps import stamp
from tests.conformance.outcome import Case, differences

T0 = 1_700_000_000_000
_SOURCE = "kubelet/node-1"


class _Node:
    """The decider, its state, and all its events."""

    def __init__(self, rules: policy.Policy, cache_size: int = CACHE_SIZE) -> None:
        self.decider: Decider[State] = decider(rules)
        size = cache_size
        self.state = State(caches=Caches(known=Cache(size=size), similar=Cache(size=size), tokens=Cache(size=size)))
        self.events: list[Event] = []

    def handle(self, message: Any, now: int) -> Sequence[Event]:
        events = self.decider.decide(self.state, message, now)
        for event in events:
            self.state = self.decider.evolve(self.state, event) or State()
        self.events += events
        return events

    def receive(self, *events: tuple[Stamp, kube_events.Recorded]) -> kube_events.Correlated:
        events_of_step = self.handle(signals.batch(events), events[-1][0].milliseconds)
        (correlated,) = (event for event in events_of_step if isinstance(event, kube_events.Correlated))
        return correlated


def _recorded(event: Mapping[str, str]) -> kube_events.Recorded:
    assert event["source"] == _SOURCE  # not part of `Recorded`: all events of a node have the same source
    namespace, _, name = event["object"].partition("/")
    severity: Any = event["type"]
    return kube_events.Recorded(
        object_kind="Pod",
        namespace=namespace,
        name=name,
        field_path=event["field_path"],
        severity=severity,
        reason=event["reason"],
        message=event["message"],
    )


def _correlate_sequence(case: Case) -> Iterator[str]:
    given = case["given"]["options"]
    chosen: dict[str, Any] = {} if given == "defaults" else dict(given)
    size = chosen.pop("lru_cache_size", CACHE_SIZE)
    if "spam_key_fields" in chosen:
        chosen["spam_key"] = tuple(name for name in chosen.pop("spam_key_fields") if name != "source")
    node = _Node(policy.Policy(options=policy.Options(**chosen)), size)
    names: dict[str, str] = {}
    for step in case["steps"]:
        at = stamp(T0 + step["t_seconds"] * 1000, step["index"] + 1)
        posts = node.receive((at, _recorded(step["event"]))).posts
        if posts and posts[0].count == 1:
            names[posts[0].name] = f"event_{step['index']}"
        if "expect" in step:
            yield from differences(step["expect"], _posted(posts, names), f"step {step['index']}: ")


def _posted(posts: Sequence[kube_events.Post], names: Mapping[str, str]) -> dict[str, Any]:
    if not posts:
        return {"action": "skip"}
    (post,) = posts
    return {
        "action": "create" if post.count == 1 else "patch",
        "count": post.count,
        "message": post.message,
        "name_of_event": names.get(post.name, post.name),
        "first_time_seconds": (post.first - T0) // 1000,
        "last_time_seconds": (Position.parse(post.at).milliseconds - T0) // 1000,
    }


def _key_equality(case: Case) -> Iterable[str]:
    one, other = (keys(_recorded(case["given"][name])) for name in ("event_a", "event_b"))
    found = {
        "same_spam_key": one.spam == other.spam,
        "same_aggregate_key": one.similar == other.similar,
        "same_full_key": one.same == other.same,
    }
    return differences(case["expect"], found)


# -- events ------------------------------------------------------------------------------------------------------------
def _event_build(case: Case) -> Iterable[str]:
    given = case["given"]
    severity: Any = given["type"]
    event = kube_events.Recorded(
        object_kind="Pod",
        namespace=given["namespace"],
        name=given["object_name"],
        severity=severity,
        reason=given["reason"],
        message=given["message"],
    )
    try:
        codec.decode(registry.type_of(type(event)), codec.encode(event), Event)
    except codec.Undecodable:
        return differences(case["expect"], {"emitted": False})
    (post,) = _Node(policy.Policy()).receive((stamp(T0, 1), event)).posts
    built = api_event(post, given.get("source_host", "node-1"))
    name = event_name(given["object_name"], given["unix_nano"])
    found = {
        "emitted": True,
        "name": name,
        "name_is_uuid": _is_uuid(name),
        "namespace": built["metadata"]["namespace"],
        "count": built["count"],
        "first_time_equals_last_time": built["firstTimestamp"] == built["lastTimestamp"],
        # Both fields name the reporter, which is not the kubelet here.
        "reporting_controller": built["reportingComponent"].replace(built["source"]["component"], "kubelet"),
        "reporting_instance": built["reportingInstance"],
    }
    return differences(case["expect"], found)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _broadcaster_queue(case: Case) -> Iterable[str]:
    given = case["given"]
    names = [f"sink-{number}" for number in range(given.get("watchers", 1))]
    rules = policy.Rules(backlog=given.get("queue_length", policy.QUEUE_LENGTH))
    node = _Node(policy.Policy(sinks=dict.fromkeys(names, rules)))
    for number in range(given["events_sent"]):
        event = kube_events.Recorded(
            object_kind="Pod", namespace="n", name=f"o-{number}", severity="Normal", reason="R", message="m"
        )
        node.receive((stamp(T0, number + 1), event))
    given_up = [event for event in node.events if isinstance(event, kube_events.GivenUp)]
    dropped = sum(event.count for event in given_up)
    waiting = [sink.waiting(node.state.head) for sink in node.state.sinks.values()]
    assert all(count + dropped == given["events_sent"] for count in waiting)
    at_least = case["expect"].get("dropped_at_least", 0)
    found = {
        "sender_blocks": node.state.heard != given["events_sent"],
        "dropped_at_least": min(at_least, dropped),
        "events_per_watcher": waiting,
    }
    return differences(case["expect"], found)


_DEFAULTS: Mapping[str, Any] = {
    "lru_cache_size": CACHE_SIZE,
    "burst": policy.Options().burst,
    "max_events": policy.Options().max_events,
    "broadcaster_queue_length": policy.Rules().backlog,
    "max_tries_per_event": policy.Rules().max_tries,
    "retry_pause_seconds": policy.Rules().pause // 1000,
}


def _default_value(case: Case) -> Iterable[str]:
    return differences(case["expect"], {"value": _DEFAULTS.get(case["given"]["option"])})


KINDS = {
    "correlate_sequence": _correlate_sequence,
    "key_equality": _key_equality,
    "sink_retry": sink_retry,
    "event_build": _event_build,
    "broadcaster_queue": _broadcaster_queue,
    "default_value": _default_value,
}
