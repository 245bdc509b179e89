"""Runs the cases of pod_lifecycle.json against the pod's decider and its pure helpers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chronolet.kernel.decider import Due
from chronolet.pod.admission.hashes import container_hash
from chronolet.pod.planning import actions, backoff
from chronolet.pod.status.phase import Status, pod_phase
from chronolet_schemas import pleg, pod
from chronolet_schemas.podspec import Container, Pod
from tests.conformance.drivers import published_conditions
from tests.conformance.outcome import Case, as_sets, differences
from tests.deciders.pod.life import POD, T0, Life, running


def _restart_decision(case: Case) -> Iterable[str]:
    given = case["given"]
    restart = _starts_in_a_deleted_pod(given) if given["pod_being_deleted"] else _starts_app(given)
    return differences(case["expect"], {"restart": restart})


def _starts_app(given: Case) -> bool:
    """Whether a pod with a ready sandbox starts its only container, which is in the state of the case."""
    seen = actions.ContainerView(seen=given["container_state"], exit_code=given.get("exit_code", 0))
    view = actions.PodView(
        policy=given["restart_policy"],
        apps=["app"],
        init=[],
        ephemeral=[],
        host_network=False,
        sandboxes=[actions.SandboxView(ready=True, attempt=0, ip="10.0.0.1")],
        containers={} if seen.seen == "never_seen" else {"app": seen},
    )
    return "app" in actions.pod_actions(view).app_to_start


def _starts_in_a_deleted_pod(given: Case) -> bool:
    """Whether the container is restarted if it exits after the deletion was requested."""
    life = running(restart_policy=given["restart_policy"]).withdraw().dies(code=given["exit_code"])
    ended = len(life.history)
    life.end()
    assert life.state is None, "the pod has not ended"
    return any(isinstance(one, pod.ContainerStartRequested | pod.RestartScheduled) for one in life.history[ended:])


def _pod_actions(case: Case) -> Iterable[str]:
    spec, status = case["given"]["pod"], case["given"]["status"]
    found = actions.pod_actions(
        actions.PodView(
            policy=spec["restart_policy"],
            apps=[one["name"] for one in spec["containers"]],
            init=[_init(one) for one in spec.get("init_containers", ())],
            ephemeral=[one["name"] for one in spec.get("ephemeral_containers", ())],
            host_network=spec.get("host_network", False),
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
    """Compare the decisions about a pod whose container exits."""
    given = case["given"]
    life, reported = running(limits=backoff.Limits(given["initial_seconds"], given["maximum_seconds"])), None
    for number, step in enumerate(case["steps"]):
        now, finished_at = (T0 + 1000 * step[key] for key in ("t_seconds", "last_exit_finished_at_seconds"))
        if finished_at != reported:
            life.when(_died(life, finished_at), at=now)
            reported = finished_at
        elif life.due is not None and life.due <= now:
            life.when(Due(at=life.due), at=now)
        yield from differences(step["expect"], _back_off(life, now), f"step {number}: ")
        if "container/app" in life.effects:
            life.start()


def _died(life: Life, finished_at: int) -> pleg.ContainerDied:
    one = life.state.container("app")
    return pleg.ContainerDied(
        pod=POD,
        uid="u1",
        container="app",
        attempt=one.attempt,
        id=one.id,
        exit_code=1,
        reason="Error",
        started_at=one.started_at,
        finished_at=finished_at,
    )


def _back_off(life: Life, now: int) -> dict[str, Any]:
    """Return the back-off of the pod's container at this time, with the keys of the cases."""
    one = life.state.container("app")
    waits = one.phase == "backing_off"
    found: dict[str, Any] = {"in_back_off": waits, "restarts": "container/app" in life.effects}
    if waits:
        return found | {
            "wait_left_seconds": (one.retry_at - now) // 1000,
            "current_back_off_seconds": one.waited_seconds,
        }
    return found | {"next_back_off_seconds": one.back_off.seconds}


def _crash_loop_back_off_keys(case: Case) -> Iterable[str]:
    first, second = (_back_off_key(case["given"][which]) for which in ("first", "second"))
    return differences(case["expect"], {"shared": first == second})


def _back_off_key(one: dict[str, Any]) -> tuple[str, str, str]:
    """Return what identifies a back-off: the pod's container, with its current definition."""
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
    spec = case["given"]["pod"]
    phase = pod_phase(
        spec["restart_policy"],
        [_status(spec["statuses"], one) for one in spec.get("init_containers", ())],
        [_status(spec["statuses"], one) for one in spec["containers"]],
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


_DEFAULTS = {
    "crash_loop_back_off_initial_seconds": backoff.KUBELET.initial_seconds,
    "crash_loop_back_off_maximum_seconds": backoff.KUBELET.maximum_seconds,
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
    **published_conditions.KINDS,
    "default_value": _default_value,
}
