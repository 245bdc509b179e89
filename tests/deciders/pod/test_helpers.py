"""The pure helpers of a pod: the conformance cases, and cases that these omit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chronolet.pod import phases
from chronolet.pod.evolve.pod import evolve
from chronolet.pod.planning.actions import ContainerView, InitView, PodView, SandboxView, pod_actions
from chronolet.pod.state import State
from chronolet.pod.status.conditions import containers_ready, initialised, pod_ready
from chronolet.pod.status.phase import Status, pod_phase
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from tests.conformance.drivers.pod_lifecycle import KINDS
from tests.conformance.runner import VECTORS
from tests.deciders.pod.life import POD, running

CASES = [
    case
    for case in msgspec.json.decode((VECTORS / "pod_lifecycle.json").read_bytes())["cases"]
    if case["kind"] in KINDS
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_actions_are_the_kubelets(case: dict[str, Any]) -> None:
    assert list(KINDS[case["kind"]](case)) == []


def test_a_running_init_container_of_an_initialised_pod_is_not_touched() -> None:
    view = PodView(
        policy="Always",
        apps=("a",),
        init=(InitView(name="i"),),
        sandboxes=(SandboxView(ready=True, attempt=0, ip="10.0.0.1"),),
        containers={"a": ContainerView(seen="running"), "i": ContainerView(seen="exited", exit_code=1)},
    )
    assert pod_actions(view).init_to_start == ()


def test_under_policy_never_a_container_with_a_liveness_failure_is_killed_and_not_restarted() -> None:
    view = PodView(
        policy="Never",
        apps=("a", "b"),
        sandboxes=(SandboxView(ready=True, attempt=0, ip="10.0.0.1"),),
        containers={"a": ContainerView(seen="running", liveness="failure"), "b": ContainerView(seen="running")},
    )
    found = pod_actions(view)
    assert (found.to_kill, found.app_to_start, found.kill_pod) == (("a",), (), False)


def test_messages_of_conditions_are_the_kubelets() -> None:
    ready = containers_ready(["a", "b"], {"b": False}, "Running")
    assert ready.message == "containers with unknown status: [a], containers with unready status: [b]"
    shut = pod_ready(containers_ready(["a"], {"a": True}, "Running"), ["g.test/a"], {"g.test/a": "False"})
    assert shut.message == 'the status of pod readiness gate "g.test/a" is not "True"'
    assert initialised({"i": False}, ["i"], "Pending").message == "containers with incomplete status: [i]"


def test_phases_that_the_kubelets_cases_omit() -> None:
    app = Status(state="running")
    sidecar = Status(state="missing", restartable=True)
    assert pod_phase("Always", [sidecar], [app]) == "Pending"
    assert pod_phase("Always", [sidecar], [Status(state="missing")]) == "Pending"
    assert pod_phase("Always", [], []) == "Pending"


def test_a_transition_outside_the_table_is_refused_with_state_and_message() -> None:
    life = running()
    event = pod.ImageReady(pod=POD, uid="u1", container="app", attempt=0, image="i", image_id="i", pulled=False)
    with pytest.raises(
        phases.ImpossibleTransition, match=r"default/web \(u1\): ImageReady.*needs phase pulling, found running"
    ):
        phases.check(life.state, event)
    ghost = pod.ImageReady(pod=POD, uid="u1", container="ghost", attempt=0, image="i", image_id="i", pulled=False)
    with pytest.raises(phases.ImpossibleTransition, match="not in the spec"):
        phases.check(life.state, ghost)
    with pytest.raises(phases.ImpossibleTransition, match="found running"):
        phases.check(life.state, pod.SandboxStartFailed(pod=POD, uid="u1", attempt=0, message="", retry_at=1))


class UnknownPodEvent(pod.PodEvent, frozen=True, kw_only=True):
    """A pod event that this release does not know."""


class UnheardOfContainer(pod.ContainerEvent, frozen=True, kw_only=True):
    """A container event that this release does not know."""


class UnknownSandboxEvent(pod.SandboxEvent, frozen=True, kw_only=True):
    """A sandbox event that this release does not know."""


def test_evolve_validates_nothing_and_never_fails() -> None:
    ref: dict[str, Any] = {"pod": POD, "uid": "u1"}
    app: dict[str, Any] = {**ref, "container": "app", "attempt": 0}
    stop = pod.ContainerStopRequested(id="x", grace_period_seconds=1, deadline=1, reason="Superseded", **app)
    state = running().state
    for event in (
        Event(),
        UnknownPodEvent(**ref),
        UnheardOfContainer(**app),
        UnknownSandboxEvent(attempt=0, **ref),
        stop,
        pod.ContainerStopFailed(id="x", message="no", retry_at=1, **app),
        pod.ContainerExited(
            id="x", exit_code=1, reason="Error", started_at=1, finished_at=2, **{**app, "container": "ghost"}
        ),
    ):
        assert evolve(state, event) == state
    stray = evolve(state, pod.StrayFound(id="x", **app))
    assert stray is not None
    assert evolve(stray, pod.StrayFound(id="x", **app)) == stray
    failed = evolve(State(), pod.CleanupFailed(message="no", retry_at=9, **ref))
    assert failed is not None
    assert failed.cleanup is not None
    assert (failed.cleanup.tries, failed.cleanup.retry_at) == (1, 9)
    assert evolve(State(), pod.PodEnded(**ref)) is None
