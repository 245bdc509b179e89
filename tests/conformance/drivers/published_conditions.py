"""Runs the cases of pod_lifecycle.json about conditions: brings a pod to the state of a case, and compares its
published status.

The pod's decider gets a manifest and results of effects. Only states that no pod of this node can reach are set
directly: a container without a status, and a pod without any status.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from msgspec.structs import replace

from chronolet.pod.state import State
from chronolet.pod.status.status import pod_status
from chronolet.rules.stated_conditions import ANNOTATION
from chronolet_schemas.podspec import ExecAction, Pod, Probe
from chronolet_schemas.podspec.pod import ReadinessGate
from tests.conformance.outcome import Case, as_sets, differences
from tests.deciders.pod.life import Life, container, manifest

_NEVER_ASKED = Probe(exec=ExecAction(command=("true",)))
"""A readiness probe that never returns a result, so that its container is not ready."""
_LISTS = {
    "unknown_containers": "containers with unknown status",
    "unready_containers": "containers with unready status",
    "incomplete_containers": "containers with incomplete status",
}


def _ready(case: Case) -> Iterable[str]:
    given = case["given"]
    ready, sidecars = given["ready_by_container"], given.get("sidecars", ())
    probes = {} if ready is None else {name: _NEVER_ASKED for name, value in ready.items() if not value}
    one = _spec(
        [container(name, readiness_probe=probes.get(name)) for name in given["containers"]],
        [container(name, readiness_probe=probes.get(name), restart_policy="Always") for name in sidecars],
        given["phase"],
    )
    gates = tuple(ReadinessGate(condition_type=name) for name in given.get("readiness_gates", ()))
    stated = ",".join(f"{name}={value}" for name, value in given.get("pod_conditions", {}).items())
    one = replace(
        one,
        spec=replace(one.spec, readiness_gates=gates),
        metadata=replace(one.metadata, annotations={ANNOTATION: stated}),
    )
    life = _started(one)
    state = _ended(life, given["phase"]) if given["phase"] in ("Succeeded", "Failed") else life.state
    state = _only(state, ready)
    for name, condition in (("containers_ready", "ContainersReady"), ("ready", "Ready")):
        yield from _published(state, condition, case["expect"][name], given["phase"], f"{name}: ")


def _initialized(case: Case) -> Iterable[str]:
    given = case["given"]
    statuses, init, sidecars = given["statuses"], given["init_containers"], given.get("sidecars", [])
    unready = [name for name, one in (statuses or {}).items() if not one["ready"]]
    missing = [name for name in init if name not in (statuses or {})]
    probed = [container(name, readiness_probe=_NEVER_ASKED if name in unready else None) for name in sidecars]
    one = _spec(
        [container()],
        [*(container(name) for name in init), *(replace(one, restart_policy="Always") for one in probed)],
        given["phase"],
    )
    ends = given["phase"] in ("Succeeded", "Failed")
    life = _started(one, stays=() if ends else (*unready, *missing))
    state = _ended(life, given["phase"]) if ends else life.state
    if ends:
        # An app container ran and ended before the init containers completed: no pod of this node reaches this state.
        state = replace(
            state, containers=tuple(_failed(one) if one.name in unready else one for one in state.containers)
        )
    yield from _published(_only(state, statuses, "app"), "Initialized", case["expect"], given["phase"])


def _spec(apps: list[Any], init: list[Any], phase: str) -> Pod:
    """Return a manifest with which a pod can reach this phase."""
    policy = "OnFailure" if phase == "Succeeded" else "Always"
    one = manifest(init_containers=tuple(init), restart_policy=policy, active_deadline_seconds=60)
    return replace(one, spec=replace(one.spec, containers=tuple(apps)))


def _started(one: Pod, stays: Collection[str] = ()) -> Life:
    """Start the containers in order. An init container succeeds unless `stays` contains its name; then no later
    container starts.
    """
    life = Life().apply(one).sandbox_up()
    for each in life.state.containers:
        if f"container/{each.name}" in life.effects:
            life.start(each.name)
            if each.kind == "init" and each.name not in stays:
                life.dies(each.name, 0)
    return life


def _ended(life: Life, phase: str) -> State:
    """End the pod: in phase Failed because its deadline passes, otherwise because its app containers exit with 0."""
    if phase == "Failed":
        life.wake()
        assert life.state.failure is not None, "the deadline did not end the pod"
    else:
        for one in life.state.of_kind("app"):
            life.dies(one.name, 0)
    state: State = life.state
    return state


def _failed(one: Any) -> Any:
    return replace(one, exit=replace(one.exit, exit_code=1))


def _only(state: State, named: Collection[str] | None, *others: str) -> State:
    """Return the state with only those containers that have a status in a case: `named` and `others`. If `named` is
    None, return a state without uid and containers: the pod has no status.
    """
    if named is None:
        return replace(state, uid="", containers=())
    return replace(state, containers=tuple(one for one in state.containers if one.name in (*named, *others)))


def _published(state: State, name: str, expected: Case, phase: str, where: str = "") -> Iterable[str]:
    status = pod_status(state)
    if phase in ("Succeeded", "Failed") and status.phase != phase:
        yield f"{where}phase: expected {phase}, found {status.phase}"
    one = next(one for one in status.conditions if one.type == name)
    found: dict[str, Any] = {"status": one.status, "reason": one.reason}
    found |= {key: _listed(words, one.message) for key, words in _LISTS.items()}
    found["unsatisfied_gates"] = sorted(re.findall('readiness gate "([^"]+)" is not "True"', one.message))
    yield from differences(as_sets(expected, *_LISTS, "unsatisfied_gates"), found, where)


def _listed(words: str, message: str) -> list[str]:
    found = re.search(rf"{words}: \[([^]]*)\]", message)
    return sorted(found[1].split()) if found else []


KINDS = {"ready_conditions": _ready, "initialized_condition": _initialized}
