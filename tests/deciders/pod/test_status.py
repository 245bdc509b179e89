"""The v1 status of a pod in each phase of its life, from which kubectl computes its STATUS column."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from chronolet.pod import signals
from chronolet.pod.state import State
from chronolet.pod.status.status import plain_status, rfc3339
from chronolet.rules.stated_conditions import ANNOTATION
from chronolet_schemas.podspec.pod import ReadinessGate
from tests.deciders.pod.life import RAW, T0, Life, container, manifest, running

START = "2023-11-14T22:13:20Z"


def status(life: Life) -> dict[str, Any]:
    return plain_status(life.state)


def app(life: Life) -> dict[str, Any]:
    found: dict[str, Any] = status(life)["containerStatuses"][0]
    return found


def conditions(life: Life) -> dict[str, str]:
    return {one["type"]: one["status"] for one in status(life)["conditions"]}


def test_a_running_pod() -> None:
    life = running()
    assert status(life) == {
        "phase": "Running",
        "startTime": START,
        "hostIP": "192.0.2.1",
        "hostIPs": [{"ip": "192.0.2.1"}],
        "podIP": "10.1.0.2",
        "podIPs": [{"ip": "10.1.0.2"}],
        "conditions": [
            {"type": "PodReadyToStartContainers", "status": "True"},
            {"type": "Initialized", "status": "True"},
            {"type": "Ready", "status": "True"},
            {"type": "ContainersReady", "status": "True"},
            {"type": "PodScheduled", "status": "True"},
        ],
        "containerStatuses": [
            {
                "name": "app",
                "image": "busybox:1",
                "imageID": "docker://sha256:1",
                "containerID": "docker://app-0",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": START}},
                "lastState": {},
            }
        ],
        "qosClass": "BestEffort",
    }


def test_a_pod_that_is_being_created() -> None:
    life = Life().apply(manifest())
    assert status(life)["phase"] == "Pending"
    assert app(life)["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert conditions(life)["Ready"] == "False"
    life.sandbox_up()
    assert app(life)["state"] == {"waiting": {"reason": "ContainerCreating"}}


def test_failures_of_sandbox_image_and_start_have_their_reasons() -> None:
    life = Life().apply(manifest()).answer("sandbox", signals.SandboxRefused, message="port is taken")
    assert app(life)["state"] == {"waiting": {"reason": "ContainerCreating", "message": "port is taken"}}
    life.wake().sandbox_up().answer("container/app", signals.ImageRefused, reason="ErrImagePull", message="none")
    assert app(life)["state"] == {"waiting": {"reason": "ErrImagePull", "message": "none"}}
    life.wake()
    text = 'Back-off pulling image "busybox:1": ErrImagePull: none'
    back_off = {"waiting": {"reason": "ImagePullBackOff", "message": text}}
    assert app(life)["state"] == back_off
    life.wake()
    assert app(life)["state"] == back_off
    life.image_there().answer("container/app", signals.ContainerRefused, reason="CreateContainerError", message="x")
    assert app(life)["state"] == {"waiting": {"reason": "CreateContainerError", "message": "x"}}


def test_an_unsupported_field_is_a_config_error() -> None:
    life = Life().apply(manifest(container(**RAW)))
    assert app(life)["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    assert app(life)["state"]["waiting"]["message"].startswith("spec.containers[0].volumeDevices: ")
    assert app(Life().apply(manifest(host_users=False)))["state"]["waiting"]["message"].startswith("spec.hostUsers")


def test_a_crash_loop() -> None:
    life = running().dies()
    assert app(life)["state"]["terminated"]["reason"] == "Error"
    assert app(life)["restartCount"] == 0
    life.start()
    assert (app(life)["restartCount"], app(life)["lastState"]["terminated"]["exitCode"]) == (1, 1)
    life.dies()
    for seconds in ("10s", "20s", "40s", "1m20s"):
        message = f"back-off {seconds} restarting failed container=app pod=web_default(u1)"
        assert app(life)["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
        assert app(life)["lastState"]["terminated"]["exitCode"] == 1
        assert status(life)["phase"] == "Running"
        life.waits_out()
        assert app(life)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        life.start().dies()


def test_a_succeeded_pod() -> None:
    life = (
        running(restart_policy="Never")
        .dies(code=0, reason="Completed")
        .answer("sandbox", signals.SandboxDown, id="sandbox-0")
    )
    found = status(life)
    assert (found["phase"], found["podIP"]) == ("Succeeded", "10.1.0.2"), "the address stays"
    assert app(life)["state"]["terminated"] == {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": START,
        "finishedAt": "2023-11-14T22:13:21Z",
        "containerID": "docker://app-0",
    }
    assert next(one for one in found["conditions"] if one["type"] == "Ready")["reason"] == "PodCompleted"
    failed = running(restart_policy="Never").dies(code=137, reason="OOMKilled")
    assert (status(failed)["phase"], app(failed)["state"]["terminated"]["reason"]) == ("Failed", "OOMKilled")


def test_a_terminating_pod_is_terminal_once_all_containers_are_dead() -> None:
    # Without a readiness probe, the kubelet reports a running container as ready until it exits.
    life = running().withdraw()
    assert (status(life)["phase"], app(life)["ready"], app(life)["started"]) == ("Running", True, True)
    life.stopped(code=1)
    assert status(life)["phase"] == "Failed"


def test_a_container_that_cannot_run_is_dead_without_a_run() -> None:
    life = Life().apply(manifest(restart_policy="Never")).sandbox_up().image_there()
    life.answer("container/app", signals.ContainerRefused, reason="RunContainerError", message="no", id="app-0")
    assert app(life)["state"]["terminated"] == {
        "exitCode": 128,
        "reason": "ContainerCannotRun",
        "message": "no",
        "finishedAt": START,
        "containerID": "docker://app-0",
    }


def test_an_empty_state_has_no_status() -> None:
    assert plain_status(State())["phase"] == "Pending"
    assert (rfc3339(0), rfc3339(T0)) == ("", START)


def test_a_failed_pod_shows_no_restart() -> None:
    life = Life().apply(manifest(active_deadline_seconds=5)).sandbox_up().start().dies().start("app").dies()
    assert app(life)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    life.wake()
    assert (status(life)["phase"], status(life)["reason"]) == ("Failed", "DeadlineExceeded")
    assert (app(life)["state"]["terminated"]["reason"], app(life)["restartCount"]) == ("Error", 1)
    assert app(life)["lastState"] == {}


def test_a_readiness_gate_follows_the_condition_in_the_annotation() -> None:
    gates = tuple(ReadinessGate(condition_type=name) for name in ("x.test/pool", "x.test/warm", "x.test/unstated"))
    one = manifest(readiness_gates=gates)
    shut = replace(one.metadata, annotations={ANNOTATION: "x.test/pool = False,x.test/warm=True"})
    life = Life().apply(replace(one, metadata=shut)).sandbox_up().start()
    found = {each["type"]: each for each in status(life)["conditions"]}
    assert found["Ready"] == {
        "type": "Ready",
        "status": "False",
        "reason": "ReadinessGatesNotReady",
        "message": 'the status of pod readiness gate "x.test/pool" is not "True"',
    }
    assert conditions(life)["ContainersReady"] == "True"
    assert (conditions(life)["x.test/pool"], conditions(life)["x.test/warm"]) == ("False", "True")
    assert "x.test/unstated" not in found

    opened = replace(one.metadata, annotations={ANNOTATION: "x.test/pool=True"})
    life.apply(replace(one, metadata=opened))
    assert conditions(life)["Ready"] == "True"
    assert life.state.container("app").phase == "running"


def test_a_pod_without_a_spec_has_no_status() -> None:
    found = {each["type"]: each.get("reason", "") for each in plain_status(State())["conditions"]}
    assert found["Ready"] == found["ContainersReady"] == "UnknownContainerStatuses"
