"""Cases of pod_lifecycle.json, by the pure helpers that the pod's decider calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chronolet.pod import actions, backoff, conditions
from chronolet.pod.hashes import container_hash
from chronolet.pod.phase import Status, pod_phase
from chronolet.pod.restart import restart_decision
from chronolet_schemas.podspec import Container, Pod
from tests.conformance.outcome import Case, as_sets, differences


def _restart_decision(case: Case) -> Iterable[str]:
    given = case["given"]
    restart = restart_decision(
        given["restart_policy"],
        given["container_state"],
        given.get("exit_code", 0),
        pod_being_deleted=given["pod_being_deleted"],
    )
    return differences(case["expect"], {"restart": restart})


def _pod_actions(case: Case) -> Iterable[str]:
    pod, status = case["given"]["pod"], case["given"]["status"]
    found = actions.pod_actions(
        actions.PodView(
            policy=pod["restart_policy"],
            apps=[one["name"] for one in pod["containers"]],
            init=[_init(one) for one in pod.get("init_containers", ())],
            ephemeral=[one["name"] for one in pod.get("ephemeral_containers", ())],
            host_network=pod.get("host_network", False),
            sandboxes=[
                actions.SandboxView(ready=one["state"] == "ready", attempt=one["attempt"], ip=one["ip"])
                for one in status["sandboxes"]
            ],
            containers={one["name"]: _container(one) for one in status["containers"]},
        )
    )
    values = {
        "kill_pod": found.kill_pod,
        "create_sandbox": found.create_sandbox,
        "sandbox_attempt": found.sandbox_attempt,
        "init_to_start": list(found.init_to_start),
        "app_to_start": list(found.app_to_start),
        "to_kill": list(found.to_kill),
        "ephemeral_to_start": list(found.ephemeral_to_start),
    }
    return differences(as_sets(case["expect"], "to_kill"), as_sets(values, "to_kill"))


def _init(one: dict[str, Any]) -> actions.InitView:
    return actions.InitView(
        name=one["name"],
        restartable=one.get("restartable", False),
        startup_probe=one.get("startup_probe", False),
    )


def _container(one: dict[str, Any]) -> actions.ContainerView:
    return actions.ContainerView(
        seen=one["state"],
        exit_code=one.get("exit_code", 0),
        definition_changed=one.get("definition_changed", False),
        startup=one.get("startup_result"),
        liveness=one.get("liveness_result"),
    )


def _crash_loop_back_off(case: Case) -> Iterable[str]:
    initial, maximum = case["given"]["initial_seconds"], case["given"]["maximum_seconds"]
    back_off = None
    for number, step in enumerate(case["steps"]):
        now, finished = step["t_seconds"] * 1000, step["last_exit_finished_at_seconds"] * 1000
        left = finished // 1000 + backoff.wait_seconds(back_off, finished, maximum) - now // 1000
        values: dict[str, Any] = {"in_back_off": left > 0, "restarts": left <= 0}
        if left > 0 and back_off is not None:
            values |= {"wait_left_seconds": left, "current_back_off_seconds": back_off.seconds}
        else:
            back_off = backoff.advanced(back_off, finished, now, initial, maximum)
            values["next_back_off_seconds"] = back_off.seconds
        yield from differences(step["expect"], values, f"step {number}: ")


def _crash_loop_back_off_keys(case: Case) -> Iterable[str]:
    first, second = (_back_off_key(case["given"][which]) for which in ("first", "second"))
    return differences(case["expect"], {"shared": first == second})


def _back_off_key(one: dict[str, Any]) -> tuple[str, str, str]:
    """Where the back-off lies: with the pod's container, for as long as its definition is the same."""
    definition = Container(name=one["container"], image=one.get("image", ""))
    return one["pod"], one["container"], container_hash(Pod(), definition)


_STATUSES = {
    "running": Status(state="running"),
    "running_started": Status(state="running", started=True),
    "exited_0": Status(state="terminated", exit_code=0),
    "exited_1": Status(state="terminated", exit_code=1),
    "waiting": Status(state="waiting"),
    "waiting_after_exit_0": Status(state="waiting", last_exit_code=0),
    "waiting_after_exit_1": Status(state="waiting", last_exit_code=1),
}
_MISSING = Status(state="missing")


def _pod_phase(case: Case) -> Iterable[str]:
    pod = case["given"]["pod"]
    phase = pod_phase(
        pod["restart_policy"],
        [_status(pod["statuses"], one) for one in pod.get("init_containers", ())],
        [_status(pod["statuses"], one) for one in pod["containers"]],
        pod_is_terminal=case["given"]["pod_is_terminal"],
    )
    return differences(case["expect"], {"phase": phase})


def _status(statuses: dict[str, str], one: dict[str, Any]) -> Status:
    word = _STATUSES[statuses[one["name"]]] if one["name"] in statuses else _MISSING
    return Status(
        state=word.state,
        exit_code=word.exit_code,
        last_exit_code=word.last_exit_code,
        started=word.started,
        restartable=one.get("restartable", False),
    )


def _ready_conditions(case: Case) -> Iterable[str]:
    given = case["given"]
    containers = conditions.containers_ready(
        given["containers"], given["ready_by_container"], given["phase"], given.get("sidecars", ())
    )
    ready = conditions.pod_ready(containers, given.get("readiness_gates", ()), given.get("pod_conditions", {}))
    for name, found in (("containers_ready", containers), ("ready", ready)):
        expected = as_sets(case["expect"][name], "unknown_containers", "unready_containers", "unsatisfied_gates")
        yield from differences(expected, _condition(found, "unready_containers"), f"{name}: ")


def _initialized_condition(case: Case) -> Iterable[str]:
    given = case["given"]
    init, sidecars, statuses = given["init_containers"], given.get("sidecars", []), given["statuses"]
    done = None
    if statuses is not None:
        done = {name: one["ready"] for name, one in statuses.items() if name in init}
        done |= {name: one["started"] for name, one in statuses.items() if name in sidecars}
    found = conditions.initialised(done, [*init, *sidecars], given["phase"])
    expected = as_sets(case["expect"], "unknown_containers", "incomplete_containers")
    return differences(expected, _condition(found, "incomplete_containers"))


def _condition(one: conditions.Condition, lacking: str) -> dict[str, Any]:
    return {
        "status": str(one.status),
        "reason": one.reason,
        "unknown_containers": sorted(one.unknown),
        lacking: sorted(one.lacking),
        "unsatisfied_gates": sorted(one.gates),
    }


_DEFAULTS = {
    "crash_loop_back_off_initial_seconds": backoff.INITIAL_SECONDS,
    "crash_loop_back_off_maximum_seconds": backoff.MAXIMUM_SECONDS,
}


def _default_value(case: Case) -> Iterable[str]:
    option = case["given"]["option"]
    if option not in _DEFAULTS:
        raise NotImplementedError(f"nothing implements the option {option} yet")
    return differences(case["expect"], {"value": _DEFAULTS[option]})


KINDS = {
    "restart_decision": _restart_decision,
    "pod_actions": _pod_actions,
    "crash_loop_back_off": _crash_loop_back_off,
    "crash_loop_back_off_keys": _crash_loop_back_off_keys,
    "pod_phase": _pod_phase,
    "ready_conditions": _ready_conditions,
    "initialized_condition": _initialized_condition,
    "default_value": _default_value,
}
