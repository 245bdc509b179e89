"""Back-offs and failures as the cause of a slow start."""

from __future__ import annotations

from typing import Any

import pytest

from chronolet_schemas import pod
from tests.cli.support.histories import accepted
from tests.cli.support.pod_start import FIRST, IMAGE, SANDBOX, Started
from tests.cli.support.written_node import NOON
from tests.history.culprits.lines import ABOUT, first_line


def exits(start: Started, milliseconds: int = 60_000) -> None:
    ran = {"started_at": start.node.now, "finished_at": start.node.now + milliseconds}
    start.after(milliseconds, pod.ContainerExited(**FIRST, id="c", exit_code=1, reason="Error", **ran))


def restarts(start: Started, seconds: int = 10) -> None:
    waits = {"at": NOON, "back_off_seconds": seconds, "next_back_off_seconds": 20}
    start.after(1, pod.RestartScheduled(**FIRST, **waits))


def test_a_restart_is_traced_from_its_back_off_and_names_its_reason(start: Started) -> None:
    start.whole()
    exits(start)
    restarts(start)
    start.node.now += 10_000
    start.image()
    start.container()
    lines = start.traced()
    assert lines[0] == (
        "default/web took 10.106 s to start, 10.000 s of it (99 %) waiting out the back-off of container app: "
        "its last run ended after 60.0 s with exit code 1 (Error)"
    )
    assert len(lines) == 4


def test_a_back_off_that_is_not_over(start: Started) -> None:
    start.whole()
    exits(start)
    restarts(start)
    start.node.now += 7_000
    assert first_line(start) == (
        "default/web has been starting for 7.000 s, 7.000 s of it (100 %) waiting out the back-off of container app: "
        "its last run ended after 60.0 s with exit code 1 (Error)"
    )


def test_a_restart_for_a_probe_begins_with_the_stop(start: Started) -> None:
    start.whole()
    asked = pod.ContainerStopRequested(**FIRST, id="c", grace_period_seconds=2, deadline=NOON, reason="LivenessFailed")
    start.after(60_000, asked)
    exits(start, 5_000)
    restarts(start, 0)
    start.image()
    start.container()
    assert first_line(start) == (
        "default/web took 5.107 s to start, 5.000 s of it (98 %) stopping container app: LivenessFailed"
    )


def test_a_dead_sandbox_begins_another_start(start: Started) -> None:
    start.whole()
    start.after(60_000, pod.SandboxExited(**SANDBOX, id="box", exit_code=137, finished_at=NOON))
    exits(start, 1)
    restarts(start, 0)
    start.sandbox(4_000)
    start.image()
    start.container()
    assert first_line(start).startswith("default/web took 4.106 s to start, 4.000 s of it (97 %) starting the sandbox")


def image_fails(start: Started, reason: str, message: str) -> None:
    start.asks_image()
    failed = {"failures": 1, "waits_from": NOON, "retry_at": NOON}
    start.after(400, pod.ImageFailed(**FIRST, image=IMAGE, reason=reason, message=message, **failed))


def test_an_image_that_waits_for_its_retry(start: Started) -> None:
    start.sandbox()
    image_fails(start, "ErrImagePull", "pull access denied")
    start.after(100, pod.ImageBackOffBegan(**FIRST, image=IMAGE, retry_at=NOON))
    start.node.now += 9_300
    assert first_line(start) == (
        "default/web has been starting for 10.000 s, 9.300 s of it (93 %) waiting out the back-off of image busybox:1 "
        "for container app: ErrImagePull: pull access denied"
    )


def test_an_image_that_is_not_retried(start: Started) -> None:
    start.sandbox()
    image_fails(start, "ErrImageNeverPull", "it is not present")
    start.node.now += 60_000
    assert first_line(start) == (
        "default/web has not started: getting image busybox:1 for container app failed: "
        "ErrImageNeverPull: it is not present"
    )


def test_a_failed_start_that_is_retried(start: Started) -> None:
    start.sandbox()
    start.image()
    start.after(1, pod.ContainerStartRequested(**FIRST, sandbox_id="b", spec_hash="", requested_at=NOON))
    failed = {"reason": "FailedMount", "message": "no such folder", "failed_at": NOON, "retry_at": NOON + 10_000}
    start.after(5, pod.ContainerStartFailed(**FIRST, **failed))
    start.node.now += 8_000
    assert first_line(start) == (
        "default/web has been starting for 8.211 s, 8.000 s of it (97 %) waiting to retry starting container "
        "app: FailedMount: no such folder"
    )


def test_a_failed_sandbox_that_is_retried(start: Started) -> None:
    start.after(4, pod.SandboxStartRequested(**SANDBOX, spec_hash="s", requested_at=NOON))
    start.after(100, pod.SandboxStartFailed(**SANDBOX, message="no network", retry_at=NOON))
    start.after(8_000, pod.SandboxStartRequested(**SANDBOX, spec_hash="s", requested_at=NOON))
    start.after(100, pod.SandboxStarted(**SANDBOX, id="box", started_at=NOON))
    start.image()
    start.container()
    lines = start.traced()
    assert lines[0] == (
        "default/web took 8.306 s to start, 8.000 s of it (96 %) waiting to retry starting the sandbox: no network"
    )
    assert lines[1].endswith("starting the sandbox  (failed: no network)")


def blocked() -> list[Any]:
    return [
        pytest.param(
            pod.ContainerBlocked(**FIRST, reason="CreateContainerConfigError", message="no secret x"),
            "container app: CreateContainerConfigError: no secret x",
            id="container",
        ),
        pytest.param(pod.SandboxBlocked(**ABOUT, message="spec.x is not honoured"), "spec.x is not honoured", id="pod"),
        pytest.param(
            pod.PodFailed(**ABOUT, reason="OutOfcpu", message="too little cpu"), "OutOfcpu: too little cpu", id="failed"
        ),
    ]


@pytest.mark.parametrize(("event", "words"), blocked())
def test_a_pod_that_may_not_start(start: Started, event: Any, words: str) -> None:
    start.after(4, event)
    start.node.now += 60_000
    assert first_line(start) == f"default/web has not started: {words}"


def test_another_spec_lets_a_blocked_pod_go_on(start: Started) -> None:
    start.after(4, pod.SandboxBlocked(**ABOUT, message="spec.x is not honoured"))
    start.after(4, accepted())
    start.whole()
    assert first_line(start).startswith("default/web took 0.306 s to start")
