"""The first line of `chronolet trace` names what was slow, and why."""

from __future__ import annotations

from typing import Any

import pytest

from chronolet.ports.spans import PULL_TURN, TURN
from chronolet_schemas import manifests, pod
from chronolet_schemas.resources import PodNeeds
from tests.cli.support.histories import UID, accepted
from tests.cli.support.pod_start import DEVICES, FIRST, IMAGE, PROCESS, SANDBOX, Started, result
from tests.cli.support.written_node import NOON, manifest

ABOUT: dict[str, Any] = {"pod": "default/web", "uid": UID}
SLOW = "127.0.0.1:5000/team/slow:1"


@pytest.fixture
def start() -> Started:
    return Started()


def first_line(start: Started) -> str:
    return start.traced()[0]


# -- pulls ------------------------------------------------------------------------------------------------------------


def test_a_slow_pull(start: Started) -> None:
    start.sandbox()
    start.image(pulled_for=11_700)
    start.container()
    assert first_line(start) == (
        "default/web took 12.006 s to start, 11.705 s of it (97 %) getting image busybox:1 for container app: "
        "pulled in 11.7 s"
    )


def other_pull(start: Started, *, ended_after: int, took: int) -> None:
    """Another pod's, that is over so many milliseconds after noon."""
    about: dict[str, Any] = {"pod": "default/other", "uid": "o", "container": "app", "attempt": 0}
    ready = pod.ImageReady(**about, image=SLOW, image_id="i", pulled=True, milliseconds=took)
    start.node.now = NOON + ended_after
    start.node.write("pod/default/other", ready)


def test_a_pull_that_waited_for_less_time_than_it_took(start: Started) -> None:
    start.sandbox()
    start.asks_image()
    other_pull(start, ended_after=3_204, took=9_000)
    ready: dict[str, Any] = {"image": IMAGE, "image_id": "i", "pulled": True}
    start.after(8_000, pod.ImageReady(**FIRST, **ready, milliseconds=8_000, waited_milliseconds=3_000))
    start.container()
    assert first_line(start) == (
        "default/web took 11.301 s to start, 11.000 s of it (97 %) getting image busybox:1 for container app: "
        f"pulled in 8.0 s, after 3.0 s of waiting in the queue behind the pull of {SLOW}"
    )


def test_a_pull_that_mostly_waited_by_the_log_alone(start: Started) -> None:
    start.node.spans[PROCESS] = []
    start.sandbox()
    start.asks_image()
    other_pull(start, ended_after=150, took=100)  # over before
    other_pull(start, ended_after=9_204, took=20_000)
    ready: dict[str, Any] = {"image": IMAGE, "image_id": "i", "pulled": True}
    start.after(200, pod.ImageReady(**FIRST, **ready, milliseconds=200, waited_milliseconds=9_000))
    start.container()
    assert start.run().output.splitlines()[0] == (
        "default/web took 9.501 s to start, 9.000 s of it (95 %) queued before getting image busybox:1 "
        f"for container app: pulled in 0.2 s, after 9.0 s of waiting in the queue behind the pull of {SLOW}"
    )


def test_a_pull_that_waits_still(start: Started) -> None:
    start.sandbox()
    asked = start.asks_image()
    start.waits(asked, PULL_TURN, at_work=1, allowed=1, ahead=2, holders=(SLOW,))
    start.node.now += 30_000
    assert first_line(start) == (
        "default/web has been starting for 30.200 s, 30.000 s of it (99 %) queued before getting image "
        f"busybox:1 for container app: 1 of at most 1 pull was running ({SLOW}), and 2 more came before it"
    )


def test_a_pull_that_goes_on_tells_how_far_it_is(start: Started) -> None:
    start.sandbox()
    start.asks_image()
    start.after(5_000, pod.ImagePullProgress(**FIRST, image=IMAGE, done_bytes=2_500_000, total_bytes=40_000_000))
    start.node.now += 1_000
    assert first_line(start).endswith("getting image busybox:1 for container app: 2.5 of 40.0 MB pulled")


def test_a_pull_that_goes_on_tells_for_how_long(start: Started) -> None:
    start.sandbox()
    start.waits(start.asks_image(), "docker.pull")
    start.node.now += 6_000
    assert first_line(start).endswith(
        "getting image busybox:1 for container app: its pull has been running for 6.000 s"
    )


# -- turns and calls --------------------------------------------------------------------------------------------------


def test_a_full_queue(start: Started) -> None:
    asked = start.sandbox(9_000)
    start.waited(asked, 8_800.0, at_work=4, allowed=4, ahead=7, holders=("default/a", "default/b", "default/c"))
    start.image()
    start.container()
    assert first_line(start) == (
        "default/web took 9.106 s to start, 8.800 s of it (97 %) queued before starting the sandbox: "
        "4 of at most 4 starts were running (default/a, default/b, default/c, 1 more), and 7 more came before it"
    )


def test_a_queue_behind_the_first_of_a_batch(start: Started) -> None:
    start.waited(start.sandbox(9_000), 8_800.0, at_work=1, allowed=2, ahead=4, holders=("default/first",))
    start.image()
    start.container()
    assert first_line(start).endswith(
        "1 of at most 2 starts was running alone, as the first of a batch (default/first), and 4 more came before it"
    )


def test_a_full_queue_that_goes_on(start: Started) -> None:
    asked = start.after(4, pod.SandboxStartRequested(**SANDBOX, spec_hash="s", requested_at=NOON))
    start.waits(asked, at_work=1, allowed=1, holders=("default/first",))
    start.node.now += 20_000
    assert first_line(start) == (
        "default/web has been starting for 20.000 s, 20.000 s of it (100 %) queued before starting the "
        "sandbox: 1 of at most 1 start was running (default/first)"
    )


def test_a_turn_of_which_nothing_more_is_known(start: Started) -> None:
    start.called(start.sandbox(9_000), TURN, 4, 8_800.0)
    start.image()
    start.container()
    assert first_line(start).endswith("starting the sandbox: the engine was at its measured limit")


def test_a_call_that_the_engine_does_not_answer(start: Started) -> None:
    asked = start.after(4, pod.SandboxStartRequested(**SANDBOX, spec_hash="s", requested_at=NOON))
    start.waits(asked, "docker.start")
    start.node.now += 20_000
    assert first_line(start).endswith("starting the sandbox: docker.start has not answered for 20.000 s")


# -- back-offs and failures -------------------------------------------------------------------------------------------


def exits(start: Started, milliseconds: int = 60_000) -> None:
    ran = {"started_at": start.node.now, "finished_at": start.node.now + milliseconds}
    start.after(milliseconds, pod.ContainerExited(**FIRST, id="c", exit_code=1, reason="Error", **ran))


def restarts(start: Started, seconds: int = 10) -> None:
    waits = {"at": NOON, "back_off_seconds": seconds, "next_back_off_seconds": 20}
    start.after(1, pod.RestartScheduled(**FIRST, **waits))


def test_a_restart_is_traced_from_its_back_off_on_and_names_its_reason(start: Started) -> None:
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


def test_a_back_off_that_goes_on(start: Started) -> None:
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


def test_an_image_that_waits_for_its_next_try(start: Started) -> None:
    start.sandbox()
    image_fails(start, "ErrImagePull", "pull access denied")
    start.after(100, pod.ImageBackOffBegan(**FIRST, image=IMAGE, retry_at=NOON))
    start.node.now += 9_300
    assert first_line(start) == (
        "default/web has been starting for 10.000 s, 9.300 s of it (93 %) waiting out the back-off of image busybox:1 "
        "for container app: ErrImagePull: pull access denied"
    )


def test_an_image_that_nobody_will_try_again(start: Started) -> None:
    start.sandbox()
    image_fails(start, "ErrImageNeverPull", "it is not present")
    start.node.now += 60_000
    assert first_line(start) == (
        "default/web has not started: getting image busybox:1 for container app failed: "
        "ErrImageNeverPull: it is not present"
    )


def test_a_start_that_failed_and_is_tried_again(start: Started) -> None:
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


def test_a_sandbox_that_failed_and_is_tried_again(start: Started) -> None:
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


# -- waits before the start -------------------------------------------------------------------------------------------


def test_devices_that_nobody_has(start: Started) -> None:
    start.after(2, pod.DevicesRequested(**DEVICES, role="app", resources={"a/b": 1}, requested_at=NOON))
    start.after(3, pod.DevicesAwaited(**DEVICES, reason="r", message="no plugin of a/b", said_at=NOON))
    start.node.now += 60_000
    assert start.traced() == [
        (
            "default/web has been starting for 60.003 s, 60.003 s of it (100 %) getting devices for container app: "
            "no plugin of a/b"
        ),
        "  +   0.000 s    60.003 s  100 %  getting devices for container app, in progress  (no plugin of a/b)",
    ]


def test_a_port_that_another_pod_has(start: Started) -> None:
    start.after(2, pod.CgroupRequested(**ABOUT, needs=PodNeeds(qos_class="BestEffort"), requested_at=NOON))
    start.after(3, pod.HostPortsAwaited(**ABOUT, holder="default/old", message="port 80 is default/old's"))
    start.node.now += 60_000
    assert first_line(start).endswith("getting its share of the node: port 80 is default/old's")


def test_an_init_container_that_takes_long() -> None:
    start = Started(initContainers=[{"name": "init", "image": IMAGE}])
    start.sandbox()
    start.image(container="init")
    start.container(container="init")
    ended = {"exit_code": 0, "reason": "Completed", "started_at": NOON, "finished_at": NOON}
    start.after(30_000, pod.ContainerExited(**{**FIRST, "container": "init"}, id="i", **ended))
    start.image()
    start.container()
    assert first_line(start) == (
        "default/web took 30.412 s to start, 30.000 s of it (99 %) running init container init"
    )


def test_nothing_begun(start: Started) -> None:
    start.node.now += 5_000
    assert start.traced() == ["default/web: no step of its start has begun for 5.000 s"]


def test_nothing_under_way(start: Started) -> None:
    start.sandbox()
    start.node.now += 50_000
    assert first_line(start) == (
        "default/web has been starting for 50.200 s, 50.000 s of it (100 %) without progress for container app"
    )


def test_no_agent_that_would_go_on() -> None:
    start = Started()
    start.node.store.renew("p", "manifests 127.0.0.1:10255", 24 * 3_600_000)
    start.node.spans = {"manifests 127.0.0.1:10255": []}
    start.node.now += 5_000
    assert first_line(start) == (
        "default/web: no step of its start has begun for 5.000 s; no agent of the node runs pods now: "
        "start it with `chronolet run`"
    )


def applied(name: str = "later") -> manifests.PodApplied:
    return manifests.PodApplied(pod=f"default/{name}", uid="l", source="apply", digest="d", manifest=manifest(name))


def test_a_pod_that_is_wanted_and_not_accepted(start: Started) -> None:
    start.node.write("manifests/node-1", applied())
    start.node.now += 5_000
    ended = start.node.run("trace", "later")
    assert ended.output == "default/later: no step of its start has begun for 5.000 s\n"


def test_a_pod_that_was_wanted_for_a_while(start: Started) -> None:
    start.node.write("manifests/node-1", applied())
    start.node.now += 5_000
    start.node.write("manifests/node-1", manifests.PodWithdrawn(pod="default/later", uid="l", source="apply"))
    ended = start.node.run("trace", "later")
    assert ended.output == "default/later began to terminate before the first step of its start\n"
    assert ended.errors.startswith("note: default/later was removed 0.000 s ago")


def terminated(reason: Any) -> pod.TerminationRequested:
    return pod.TerminationRequested(**ABOUT, reason=reason, grace_period_seconds=2, deadline=NOON)


def test_a_pod_whose_predecessor_ends_first(start: Started) -> None:
    start.whole()
    start.after(0, pod.SuccessorAwaits(**ABOUT, successor="next"), terminated("Replaced"))
    start.node.now += 4_000
    assert first_line(start) == "default/web has waited 4.000 s for its predecessor to end"


def test_a_pod_that_was_told_to_end_in_the_middle_of_its_start(start: Started) -> None:
    start.sandbox()
    start.asks_image()
    start.after(3_000, terminated("Deleted"))
    start.node.now += 60_000
    assert start.traced()[0] == (
        "default/web began to terminate 3.200 s after its start began, 3.000 s of it (94 %) getting image busybox:1 "
        "for container app: given up: the pod is ending"
    )


def test_a_pod_that_ran_when_the_log_began() -> None:
    start = Started()
    start.after(0, pod.PodEnded(**ABOUT))
    adopted = pod.PodAdopted(
        **{**ABOUT, "uid": "old"},
        source="apply",
        digest="d",
        manifest=manifest(),
        accepted_at=NOON,
        sandbox_hash="s",
        container_hashes={},
    )
    start.after(0, adopted)
    start.node.now += 3_000
    assert start.traced() == ["default/web already ran when this log began, 3.000 s ago; its start is not recorded"]


# -- late probes ------------------------------------------------------------------------------------------------------


def test_a_probe_that_a_stall_made_late(start: Started) -> None:
    start.whole()
    start.probing()
    start.node.results = [
        result(at=NOON + 9_000, late=0.4),
        result(at=NOON + 5_000, late=2_300.0, stalled=2_100.0),
        result(at=NOON + 4_000, late=9_000.0, uid="another"),
        result(at=NOON - 4_000, late=9_000.0),
    ]
    assert first_line(start) == (
        "default/web: the liveness probe of container app began 2.300 s late: agent or machine stalled for 2.100 s"
    )


def test_a_probe_that_others_made_late(start: Started) -> None:
    start.whole()
    start.probing()
    start.node.results = [
        result(at=NOON + 20_000, name="default/after", uid="a", took=9_000.0),
        result(at=NOON + 9_000, late=4_000.0),
        result(at=NOON + 4_500, name="default/hog", uid="h", took=4_200.0),
        result(at=NOON + 4_600, name="default/pig", uid="p", took=900.0),
        result(at=NOON + 1_000, name="default/before", uid="b", took=900.0),
    ]
    assert first_line(start) == (
        "default/web: the liveness probe of container app began 4.000 s late: 2 other probes were running meanwhile, "
        "default/hog: the liveness probe of container app for 4.200 s"
    )


@pytest.mark.parametrize(
    ("agent", "why"),
    [(0, "other probes were running"), (6_000, "agent or machine stalled for 6.000 s")],
)
def test_a_late_probe_of_which_the_log_alone_knows(start: Started, agent: int, why: str) -> None:
    start.whole()
    start.probing()
    start.delayed(7_000, agent)
    assert first_line(start) == f"default/web: the liveness probe of container app began 7.000 s late: {why}"


def test_what_the_log_rounds_up_is_no_other_probe(start: Started) -> None:
    start.whole()
    start.probing()
    start.node.results = [
        result(at=NOON + 9_000, late=4_000.6),
        result(at=NOON + 4_500, name="default/hog", uid="h", took=4_200.0),
    ]
    start.delayed(4_001)
    assert "1 other probe was running meanwhile, default/hog" in first_line(start)


def test_a_slow_start_and_a_late_probe_are_both_named(start: Started) -> None:
    start.sandbox()
    start.image(pulled_for=11_700)
    start.container()
    start.probing()
    start.node.results = [result(at=NOON + 20_000, late=2_300.0, stalled=2_100.0)]
    line = first_line(start)
    assert line.startswith("default/web took 12.006 s to start, 11.705 s of it (97 %) getting image busybox:1")
    assert "; default/web: the liveness probe of container app began 2.300 s late: agent or machine" in line


@pytest.mark.parametrize("garbage", ["", "soon"])
def test_results_that_are_none_are_passed_over(start: Started, garbage: str) -> None:
    start.whole()
    start.probing()
    bad = result(at=NOON + 1, late=5_000.0)
    start.node.results = [type(bad)(**{**_fields(bad), "late_milliseconds": garbage})]
    assert first_line(start).startswith("default/web took 0.306 s to start")


def _fields(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}
