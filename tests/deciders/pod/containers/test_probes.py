"""A pod whose containers are probed: its requests, and its reaction to results."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronolet.pod import signals
from chronolet.pod.actor import kind
from chronolet.pod.decider import DECIDER, decider
from chronolet.pod.planning.probing import resolved
from chronolet.pod.status.status import pod_status
from chronolet_schemas import pod, prober
from chronolet_schemas.podspec import (
    ContainerPort,
    EnvVar,
    ExecAction,
    GRPCAction,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    Probe,
    SleepAction,
    TCPSocketAction,
)
from tests.deciders.pod.life import POD, T0, Life, container, manifest, running

EXEC = Probe(exec=ExecAction(command=("true",)))


def result(life: Life, probe: prober.ProbeName, outcome: prober.ProbeResult, name: str = "app", **changes: Any) -> Life:
    """Let the prober report a result for the current container."""
    one = life.state.container(name)
    ref = {"pod": POD, "uid": "u1", "container": name, "attempt": one.attempt}
    fields = ref | {"id": one.id, "started_at": one.started_at}
    return life.when(prober.ResultChanged(probe=probe, result=outcome, **fields | changes))


def requested(life: Life) -> list[tuple[str, str]]:
    """Return the probes that the last decision requested."""
    return [(event.container, event.probe) for event in life.facts if isinstance(event, pod.ProbingRequested)]


def flags(life: Life, name: str = "app") -> tuple[bool | None, bool]:
    status = pod_status(life.state)
    every = (*status.init_container_statuses, *status.container_statuses)
    one = next(one for one in every if one.name == name)
    return one.started, one.ready


def ready(life: Life) -> str:
    return next(one.status for one in pod_status(life.state).conditions if one.type == "Ready")


def test_a_running_container_is_probed() -> None:
    life = running(container(liveness_probe=EXEC, readiness_probe=EXEC, startup_probe=EXEC))
    assert requested(life) == [("app", "Startup"), ("app", "Readiness"), ("app", "Liveness")]
    assert life.facts[1] == pod.ProbingRequested(
        pod=POD,
        uid="u1",
        container="app",
        attempt=0,
        id="app-0",
        digest=life.state.digest,
        started_at=T0,
        ip="10.1.0.2",
        restarts="Always",
        started=False,
        field="spec.containers{app}",
        probe="Startup",
        definition=EXEC,
        period_milliseconds=10_000,
    )


def test_ports_and_commands_are_resolved() -> None:
    ports = (ContainerPort(name="web", container_port=8080),)
    command = ExecAction(command=("test", "$(WHERE)", "$(OTHER)"))
    life = running(
        container(
            ports=ports,
            env=(EnvVar(name="WHERE", value="/tmp"),),
            liveness_probe=Probe(exec=command),
            readiness_probe=Probe(http_get=HTTPGetAction(port="web")),
            startup_probe=Probe(tcp_socket=TCPSocketAction(port="gone")),
        )
    )
    startup, readiness, liveness = (one.definition for one in life.facts if isinstance(one, pod.ProbingRequested))
    assert startup.tcp_socket == TCPSocketAction(port="gone")
    assert readiness.http_get == HTTPGetAction(port=8080)
    assert liveness.exec == ExecAction(command=("test", "/tmp", "$(OTHER)"))


def test_a_command_above_the_size_limit_is_not_expanded() -> None:
    probe = Probe(exec=ExecAction(command=("test", "$(A)$(A)")))
    large = container(env=(EnvVar(name="A", value="a" * 100_000),))
    assert resolved(large, probe) == probe


def test_a_grpc_probe_is_requested_unchanged() -> None:
    probe = Probe(grpc=GRPCAction(port=9000, service="health"))
    assert running(container(liveness_probe=probe)).only(pod.ProbingRequested).definition == probe


@pytest.mark.parametrize(
    ("host_network", "ip", "address"),
    [(True, "", "127.0.0.1"), (True, "10.0.0.7", "10.0.0.7"), (False, "10.0.0.8", "10.0.0.8")],
)
def test_a_pod_on_the_nodes_network_is_probed_at_the_loopback_if_the_node_has_no_address(
    host_network: bool, ip: str, address: str
) -> None:
    probe = Probe(grpc=GRPCAction(port=9000))
    life = Life().apply(manifest(container(liveness_probe=probe), host_network=host_network)).sandbox_up(ip)
    assert life.start().only(pod.ProbingRequested).ip == address


def test_an_annotation_sets_the_period() -> None:
    one = manifest(container(readiness_probe=EXEC))
    metadata = replace(one.metadata, annotations={"chronolet/period-milliseconds": "250"})
    life = Life().apply(replace(one, metadata=metadata)).sandbox_up().start()
    assert life.only(pod.ProbingRequested).period_milliseconds == 250


def test_plain_init_and_ephemeral_containers_are_not_probed() -> None:
    life = Life().apply(manifest(init_containers=(container("init", readiness_probe=EXEC),))).sandbox_up()
    assert requested(life.start("init")) == []


def test_probing_waits_for_the_post_start_hook() -> None:
    hook = Lifecycle(post_start=LifecycleHandler(sleep=SleepAction(seconds=5)))
    life = running(container(readiness_probe=EXEC, lifecycle=hook))
    assert requested(life) == []
    assert requested(life.wake()) == [("app", "Readiness")]


def test_readiness_and_startup_results_set_the_status_flags() -> None:
    life = running(container(readiness_probe=EXEC, startup_probe=EXEC))
    assert (flags(life), ready(life)) == ((False, False), "False")
    run: dict[str, Any] = {"attempt": 0, "id": "app-0", "started_at": T0}
    ref: dict[str, Any] = {"pod": POD, "uid": "u1", "container": "app", **run}
    result(life, "Readiness", "success").then(pod.ContainerProbed(probe="Readiness", result="success", **ref))
    assert (flags(life), ready(life)) == ((False, False), "False")
    result(life, "Startup", "success")
    assert (flags(life), ready(life)) == ((True, True), "True")
    result(life, "Readiness", "failure")
    assert (flags(life), ready(life)) == ((True, False), "False")


@pytest.mark.parametrize(
    ("probe", "outcome"), [("Liveness", "success"), ("Readiness", "failure"), ("Startup", "unknown")]
)
def test_an_initial_value_is_ignored(probe: Any, outcome: Any) -> None:
    life = running(container(**{f"{probe.lower()}_probe": EXEC}))
    result(life, probe, outcome).then()


def test_results_of_other_containers_and_lives_are_ignored() -> None:
    life = running(container(readiness_probe=EXEC))
    result(life, "Readiness", "success", id="app-9").then()
    result(life, "Readiness", "success", uid="u0").then()
    result(life, "Readiness", "success", container="other").then()
    life.dies()
    result(life, "Readiness", "success").then()


@pytest.mark.parametrize(
    ("probe", "outcome"), [("Liveness", "failure"), ("Readiness", "success"), ("Startup", "failure")]
)
def test_a_result_of_the_previous_run_is_ignored(probe: Any, outcome: Any) -> None:
    """Something restarts a dead container while a result of its first run is in flight."""
    life = running(container(**{f"{probe.lower()}_probe": EXEC}))
    life.dies().start().dies()  # the next start waits
    before = life.state.container("app")
    life.runs(before.id, attempt=before.attempt, started_at=life.at + 1)
    again = life.state.container("app")
    assert (again.phase, again.id) == ("running", before.id)
    assert again.started_at > before.started_at
    result(life, probe, outcome, started_at=before.started_at).then()
    assert life.state.container("app").phase == "running"
    result(life, probe, outcome)
    assert "ContainerProbed" in life.kinds


def test_a_failed_liveness_probe_restarts_with_back_off() -> None:
    life = running(container(liveness_probe=EXEC))
    result(life, "Liveness", "failure")
    stop = life.only(pod.ContainerStopRequested)
    assert (stop.reason, stop.grace_period_seconds) == ("LivenessFailed", 30)
    life.then_kube_events(("Killing", "Container app failed liveness probe, will be restarted"))
    life.answer("create/app", signals.ContainerMade, id="app-1")
    life.stopped(code=137)
    restarted = ["RestartScheduled", "ImageEnsureRequested", "ImageReady", "ContainerStartRequested"]
    assert life.kinds == ["ContainerExited", *restarted]
    life.up()
    assert requested(life) == [("app", "Liveness")]
    result(life, "Liveness", "failure")
    life.stopped(code=137)
    assert life.only(pod.RestartScheduled).back_off_seconds == 10


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_a_liveness_failure_restarts_with_any_exit_code(policy: str) -> None:
    life = running(container(liveness_probe=EXEC), restart_policy=policy)
    result(life, "Liveness", "failure").stopped(code=0)
    assert "RestartScheduled" in life.kinds


def test_a_liveness_failure_does_not_restart_under_policy_never() -> None:
    life = running(container(liveness_probe=EXEC), container("other"), restart_policy="Never")
    result(life, "Liveness", "failure")
    life.then_kube_events(("Killing", "Container app failed liveness probe"))
    life.stopped(code=137)
    assert life.kinds == ["ContainerExited"]


def test_the_last_container_of_a_pod_is_stopped_for_its_probe() -> None:
    life = running(container(liveness_probe=EXEC), restart_policy="Never")
    result(life, "Liveness", "failure").then_kube_events(("Killing", "Container app failed liveness probe"))
    assert life.only(pod.ContainerStopRequested).reason == "LivenessFailed"
    life.stopped(code=137)
    assert life.kinds == ["ContainerExited", "SandboxStopRequested"]


@pytest.mark.parametrize(("own", "grace"), [(5, 5), (1, 2), (None, 30)])
def test_the_probe_may_set_its_own_grace_period(own: int | None, grace: int) -> None:
    probe = Probe(exec=EXEC.exec, termination_grace_period_seconds=own)
    life = running(container(startup_probe=probe))
    result(life, "Startup", "failure")
    stop = life.only(pod.ContainerStopRequested)
    assert (stop.reason, stop.grace_period_seconds, stop.deadline) == ("StartupFailed", grace, T0 + grace * 1000)
    life.then_kube_events(("Killing", "Container app failed startup probe, will be restarted"))


def test_a_terminating_pod_has_its_own_grace_period() -> None:
    probe = Probe(exec=EXEC.exec, termination_grace_period_seconds=5)
    life = running(container(liveness_probe=probe)).withdraw()
    assert life.only(pod.ContainerStopRequested).grace_period_seconds == 30


def test_the_next_attempt_starts_without_results() -> None:
    life = running(container(readiness_probe=EXEC))
    result(life, "Readiness", "success")
    assert flags(life) == (True, True)
    life.dies()
    life.start()
    assert flags(life) == (True, False)
    assert requested(life) == [("app", "Readiness")]


def test_a_sidecar_gates_what_starts_after_it_and_is_restarted() -> None:
    proxy = container("proxy", restart_policy="Always", startup_probe=EXEC, liveness_probe=EXEC)
    life = Life().apply(manifest(init_containers=(proxy,), restart_policy="Never")).sandbox_up()
    life.start("proxy")
    assert requested(life) == [("proxy", "Startup"), ("proxy", "Liveness")]
    assert all(one.restarts == "Always" for one in life.facts if isinstance(one, pod.ProbingRequested))
    assert life.state.container("app").phase == "waiting"
    result(life, "Startup", "success", "proxy")
    assert life.state.container("app").phase == "pulling"
    life.start("app")
    result(life, "Liveness", "failure", "proxy").then_kube_events(
        ("Killing", "Init container proxy failed liveness probe")
    )
    life.stopped("container/proxy", 137)
    assert life.state.container("proxy").phase == "pulling"


def test_a_changed_spec_is_sent_to_the_prober() -> None:
    life = running(container(liveness_probe=EXEC, readiness_probe=EXEC))
    result(life, "Readiness", "success")
    other = Probe(exec=ExecAction(command=("false",)))
    life.apply(manifest(container(readiness_probe=other)))
    assert [(one.probe, type(one).__name__) for one in life.facts if hasattr(one, "probe")] == [
        ("Liveness", "ProbingWithdrawn"),
        ("Readiness", "ProbingRequested"),
    ]
    assert flags(life) == (True, True), "the results of this run stay"
    assert [each.probe for each in life.state.container("app").probing] == ["Readiness"]


def test_a_container_removed_from_the_spec_is_no_longer_probed() -> None:
    life = running(container(), container("other", liveness_probe=EXEC))
    life.apply(manifest(container()))
    assert life.only(pod.ProbingWithdrawn).container == "other"
    assert life.only(pod.ContainerStopRequested).container == "other"
    life.stopped("container/other")
    assert life.state.container("other") is None


def test_the_end_of_a_pod_is_sent_to_the_prober() -> None:
    life = running(container(liveness_probe=EXEC)).withdraw().stopped()
    life.end()
    assert life.kinds == ["ProbingWithdrawn", "PodEnded"]


def test_a_changed_definition_precedes_the_probe_as_reason() -> None:
    life = running(container(liveness_probe=EXEC))
    life.apply(manifest(container(image="busybox:2", liveness_probe=EXEC)))
    assert life.only(pod.ContainerStopRequested).reason == "SpecChanged"
    result(life, "Liveness", "failure")
    assert life.kinds == ["ContainerProbed"]


def test_without_a_prober_each_probe_counts_as_success() -> None:
    life = Life()
    life.decider = decider(frozenset())
    life.apply(manifest(container(liveness_probe=EXEC, readiness_probe=EXEC, startup_probe=EXEC))).sandbox_up().start()
    assert [one.probe for one in life.facts if isinstance(one, pod.ProbingSkipped)] == [
        "Startup",
        "Readiness",
        "Liveness",
    ]
    assert requested(life) == []
    assert (flags(life), ready(life)) == ((True, True), "True")
    life.apply(manifest(container(readiness_probe=EXEC)))
    assert "ProbingSkipped" in life.kinds
    assert life.due is None
    life.decider = DECIDER
    assert requested(life.wake()) == [("app", "Readiness")], "a prober is hosted now"
    assert (flags(life), life.due) == ((True, False), None)


def test_the_pod_subscribes_to_the_prober() -> None:
    ref: dict[str, Any] = {"pod": POD, "uid": "u1", "container": "app", "attempt": 0, "id": "a", "started_at": 1}
    changed = prober.ResultChanged(probe="Liveness", result="success", **ref)
    assert kind().subscribes[prober.ResultChanged](changed) == (POD,)
