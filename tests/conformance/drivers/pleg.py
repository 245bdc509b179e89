"""Cases of pleg.json, by pleg's decider, the helpers that it calls, and the node's gauges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chronolet.adapters.fake_runtime import FakeRuntime
from chronolet.node.measured_runtime import RelistedRuntime
from chronolet.node.metrics import CONTAINER_STATES, Metrics
from chronolet.node.settings import Settings
from chronolet.pleg import signals, transitions, wanted
from chronolet.pleg.decider import DECIDER
from chronolet.pleg.state import State
from chronolet.ports.labels import CONTAINER_NAME, POD_UID
from chronolet.ports.runtime import ContainerState
from chronolet_schemas import pleg
from tests.conformance.outcome import Case, differences

_WORDS = {pleg.ContainerStarted: "started", pleg.ContainerDied: "died", pleg.ContainerRemoved: "removed"}
"""What others act on; that a state cannot be told (`ContainerChanged`) is for pleg's own table."""


def _state_transition(case: Case) -> Iterable[str]:
    old, new = case["given"]["old_state"], case["given"]["new_state"]
    state = _told(DECIDER.initial, old)
    sent = [_WORDS[type(event)] for event in DECIDER.decide(state, _listed(new), 0) if type(event) in _WORDS]
    return differences(case["expect"], {"computed_events": list(transitions.computed(old, new)), "sent_events": sent})


def _told(state: State, seen: str) -> State:
    for event in DECIDER.decide(state, _listed(seen), 0):
        state = DECIDER.evolve(state, event) or DECIDER.initial
    return state


def _listed(state: Any) -> signals.Relisted:
    """A listing with one container, or without it: then the runtime says that it is gone."""
    found: Any = "removed" if state == "absent" else state
    seen = signals.Seen(pod="default/web", uid="u1", container="app", attempt=0, id="k1", state=found)
    return signals.Relisted(began_at=0, count=1, seen=(seen,))


class _Listing(FakeRuntime):
    """A runtime that lists what a case says."""

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
            marks = {POD_UID: pod["uid"], CONTAINER_NAME: name}
            yield ContainerState(id=one["id"], name=one["id"], labels=marks, state=one["state"], detailed=False)


def _value(metrics: Metrics, name: str, **labels: str) -> int:
    return int(metrics.registry.get_sample_value(name, labels) or 0)


_SETTINGS = Settings(node="node", root_dir=Path("/"))
_DEFAULTS = {
    "relist_period_seconds": wanted.Relist(subject="relist", intent="relist").period_seconds,
    "event_driven_relist_period_seconds": _SETTINGS.pleg_relist_period // 1000,
    "relist_threshold_seconds": _SETTINGS.pleg_relist_threshold // 1000,
}


def _default_value(case: Case) -> Iterable[str]:
    option = case["given"]["option"]
    if option not in _DEFAULTS:
        raise NotImplementedError(f"nothing implements the option {option} yet")
    return differences(case["expect"], {"value": _DEFAULTS[option]})


KINDS = {
    "state_transition": _state_transition,
    "default_value": _default_value,
    "running_gauges": _running_gauges,
}
