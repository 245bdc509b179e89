"""Runs the cases of pleg.json against pleg's decider, its helpers, and the node's gauges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.kernel.decider import Due
from chronolet.node.metrics.measured_runtime import RelistedRuntime
from chronolet.node.metrics.metrics import CONTAINER_STATES, Metrics
from chronolet.node.settings.table import Settings
from chronolet.pleg import decider, health, signals, wanted
from chronolet.pleg.containers import transitions
from chronolet.pleg.decider import DECIDER
from chronolet.pleg.state import State
from chronolet.pleg.workers.listings import Relisting
from chronolet.pod.status.addresses import pod_ips
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.labels import POD_UID
from chronolet.ports.runtime.runtime import ContainerState, Refusal
from chronolet_schemas import pleg
from chronolet_schemas.envelope import Event
from tests.conformance.outcome import Case, differences

_WORDS = {pleg.ContainerStarted: "started", pleg.ContainerDied: "died", pleg.ContainerRemoved: "removed"}
"""The events that other kinds act on, and their names in the cases. A change to an unknown state (`ContainerChanged`)
matters only to pleg itself.
"""


def _state_transition(case: Case) -> Iterable[str]:
    old, new = case["given"]["old_state"], case["given"]["new_state"]
    state = _state_after(DECIDER.initial, old)
    sent = [_WORDS[type(event)] for event in DECIDER.decide(state, _listed(new), 0) if type(event) in _WORDS]
    return differences(case["expect"], {"computed_events": list(transitions.computed(old, new)), "sent_events": sent})


def _state_after(state: State, seen: str) -> State:
    for event in DECIDER.decide(state, _listed(seen), 0):
        state = DECIDER.evolve(state, event) or DECIDER.initial
    return state


def _listed(state: Any, **times: Any) -> signals.Relisted:
    """Return a listing with one container; for the state `absent`, a listing that reports the container's removal."""
    found: Any = "removed" if state == "absent" else state
    observed = signals.ContainerObserved(
        pod="default/web", uid="u1", container="app", attempt=0, id="k1", state=found, **times
    )
    return signals.Relisted(began_at=0, count=1, observed=(observed,))


class _Listing(FakeRuntime):
    """A runtime that lists the containers of a case."""

    def __init__(self, listed: Sequence[ContainerState]) -> None:
        super().__init__()
        self._listed = listed

    def list(self, labels: Mapping[str, str]) -> Sequence[ContainerState]:
        del labels
        return self._listed


def _running_gauges(case: Case) -> Iterable[str]:
    metrics = Metrics("node")
    runtime = _Listing([one for pod in case["given"]["pods"] for one in _containers(pod)])
    RelistedRuntime(runtime, metrics, 180_000).list({})
    by_state = {
        state: _value(metrics, "kubelet_running_containers", container_state=state) for state in CONTAINER_STATES
    }
    found = {
        "containers_by_state": {state: value for state, value in by_state.items() if value},
        "running_pods": _value(metrics, "kubelet_running_pods"),
    }
    return differences(case["expect"], found)


def _containers(pod: dict[str, Any]) -> Iterator[ContainerState]:
    for key, name in (("containers", "app"), ("sandboxes", pleg.SANDBOX)):
        for one in pod.get(key, ()):
            owner = labels.Owner(pod=f"default/{pod['uid']}", uid=pod["uid"], container=name, attempt=0)
            marks = labels.written("node", owner)
            yield ContainerState(id=one["id"], name=one["id"], labels=marks, state=one["state"], detailed=False)


def _value(metrics: Metrics, name: str, **labels: str) -> int:
    return int(metrics.registry.get_sample_value(name, labels) or 0)


def _relist_sequence(case: Case) -> Iterable[str]:
    """Compare the relists of a case, with its channel capacity in place of the product's, which is always the
    kubelet's.
    """
    with mock.patch.object(decider, "MOST_EVENTS", case["given"]["channel_capacity"]):
        yield from _relisted_in_turn(case)


def _relisted_in_turn(case: Case) -> Iterable[str]:
    runtime = _Cluster()
    state = DECIDER.initial
    with Relisting(runtime, "node") as relisting:
        for number, step in enumerate(case["steps"]):
            runtime.take(step)
            listed_at = runtime.listed_at
            try:
                relisted = relisting.relisted()
            except Refusal as refusal:
                events: Sequence[Event] = DECIDER.decide(state, signals.RelistFailed(error=str(refusal)), 0)
            else:
                runtime.listed_at += 1
                events = DECIDER.decide(state, relisted, 0)
            for event in events:
                state = DECIDER.evolve(state, event) or DECIDER.initial
            found = _relisted(runtime, state, list(_sent(events)), moved=runtime.listed_at > listed_at)
            found |= _of_full_channel(step["expect"], found)
            yield from differences(_as_found(step["expect"]), found, f"step {number}: ")


def _sent(events: Iterable[Event]) -> Iterator[tuple[str, str, str]]:
    for event in events:
        match event:
            case pleg.ContainerStarted() | pleg.ContainerDied() | pleg.ContainerRemoved():
                yield (event.uid, _WORDS[type(event)], event.id)
            case pleg.PodReadable(changed=False):
                yield (event.uid, "sync", "")
            case _:
                continue


def _relisted(runtime: _Cluster, state: State, sent: list[tuple[str, str, str]], *, moved: bool) -> dict[str, Any]:
    cache = {run.uid: "error" if run.uid in state.unread else "status" for run in state.containers.values()}
    cache |= dict.fromkeys(state.unread, "error")
    return {
        "events": sorted(sent),
        "event_count_delivered": len(sent),
        "inspected_pods": sorted(runtime.inspected),
        "cache": cache,
        "relist_time_moves": moved,
    }


def _as_found(expected: Case) -> Case:
    """Return the expectation in the form that `_relisted` returns."""
    shaped = dict(expected)
    for key in ("events", "delivered_are_subset_of"):
        if key in shaped:
            shaped[key] = sorted((one["pod_uid"], one["type"], one.get("id", "")) for one in shaped[key])
    return shaped


def _of_full_channel(expected: Case, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the found value of `delivered_are_subset_of` if the case has that expectation: the expected set if it
    contains all events found, otherwise the events found.
    """
    if "delivered_are_subset_of" not in expected:
        return {}
    whole = _as_found(expected)["delivered_are_subset_of"]
    return {"delivered_are_subset_of": whole if set(found["events"]) <= set(whole) else found["events"]}


class _Cluster(FakeRuntime):
    """A runtime with the containers of a step. It records the uids of the pods whose existing containers were
    inspected.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inspected: set[str] = set()
        self.listed_at = 0
        self._has: dict[str, ContainerState] = {}
        self._fails_for: frozenset[str] = frozenset()
        self._list_fails = False

    def take(self, step: Case) -> None:
        self.inspected.clear()
        self._list_fails = step.get("list_fails", False)
        self._fails_for = frozenset(step.get("status_fails_for", ()))
        if not self._list_fails:
            self._has = {one.id: one for pod in step["pods"] for one in _containers(pod)}

    def list(self, labels: Mapping[str, str]) -> Sequence[ContainerState]:
        del labels
        if self._list_fails:
            raise Refusal("unavailable", "no listing")
        return list(self._has.values())

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        del timeout_seconds
        found = self._has.get(container_id_or_name)
        if found is None:
            return None
        uid = found.labels[POD_UID]
        self.inspected.add(uid)
        if uid in self._fails_for:
            raise Refusal("failed", "no status")
        return found


def _health(case: Case) -> Iterable[str]:
    """Compare with the vectors what the decider reports, whose timer runs while listings fail, and what the health
    check reports.
    """
    threshold, listed_at, state = case["given"]["relist_threshold_seconds"] * 1000, 0, DECIDER.initial
    for number, step in enumerate(case["steps"]):
        now = _FIRST + step["t_seconds"] * 1000
        if step["op"] == "check":
            # A check follows a listing that has just failed.
            failed = signals.RelistFailed(error="x", last_listed_at=listed_at, threshold_milliseconds=threshold)
            after = _state_at(state, failed, now)
            found = {"healthy": not after.unhealthy}
            yield from differences(step["expect"], found, f"step {number}: ")
            helper = {"healthy": not health.illness(listed_at or None, now, threshold)}
            yield from differences(step["expect"], helper, f"step {number}, by the check: ")
        elif step["listing_succeeds"]:
            listed_at = now
            state = _state_at(state, signals.Relisted(began_at=now, count=0), now)


def _state_at(state: State, message: Any, now: int) -> State:
    """Return the state after a message and after any timer that is due."""
    for event in DECIDER.decide(state, message, now):
        state = DECIDER.evolve(state, event) or DECIDER.initial
    due = DECIDER.due(state)
    return _state_at(state, Due(at=due), now) if due is not None and due <= now else state


def _evented_cache_update(case: Case) -> Iterable[str]:
    """Check whether a status replaces the cached end of a run.

    A later status belongs to the next run and replaces the cached one; any other status belongs to the ended run and is
    ignored.
    """
    given = case["given"]
    cached_at = _FIRST + given["cached_at_seconds"] * 1000
    status_at = _FIRST + given["status_timestamp_seconds"] * 1000
    ended = _listed("exited", started_at=_FIRST, finished_at=cached_at)
    state = _state_at(DECIDER.initial, ended, cached_at)
    started_at = status_at if status_at > cached_at else _FIRST
    after = _state_at(state, _listed("running", started_at=started_at), status_at)
    return differences(case["expect"], {"updated": after.containers["k1"].state == "running"})


def _pod_ips(case: Case) -> Iterable[str]:
    given = case["given"]
    ready = "ready" in given["sandbox_states"]
    found = pod_ips(given["cached_ips"], given["new_ips"], sandbox_ready=ready)
    return differences(case["expect"], {"ips": list(found)})


_FIRST = 1_700_000_000_000
_SETTINGS = Settings(node="node", root_dir=Path("/"))
_RELIST = wanted.Relist(subject="relist", intent="relist")
_DEFAULTS = {
    "relist_period_seconds": _RELIST.period_seconds,
    "event_driven_relist_period_seconds": _RELIST.event_driven_period_seconds,
    "relist_threshold_seconds": _SETTINGS.pleg_relist_threshold // 1000,
}


def _default_value(case: Case) -> Iterable[str]:
    return differences(case["expect"], {"value": _DEFAULTS[case["given"]["option"]]})


KINDS = {
    "state_transition": _state_transition,
    "relist_sequence": _relist_sequence,
    "health": _health,
    "evented_cache_update": _evented_cache_update,
    "pod_ips": _pod_ips,
    "default_value": _default_value,
    "running_gauges": _running_gauges,
}
