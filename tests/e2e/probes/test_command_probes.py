"""Probes that are commands, as the Kubernetes documentation describes them: real agent, Docker and Redis.

The pods are taken from the documentation, with its periods divided by ten; `--long` runs its liveness example with the
original times.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from chronolet.adapters.probes.results.reader import kept_results
from chronolet.pod.status.status import pod_status
from chronolet_schemas import pod, prober
from tests.e2e.node import Node, running_node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.probes.probed_pods import ENOUGH_SECONDS, NEVER, file_in, started, started_and_ready, with_period
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import private_redis

STAYS = "trap 'exit 0' TERM; while :; do sleep 1; done"
IGNORES_TERM = "trap '' TERM; while :; do sleep 1; done"


def command(*words: str, **more: Any) -> dict[str, Any]:
    return {"exec": {"command": list(words)}, "timeoutSeconds": ENOUGH_SECONDS, **more}


def liveness_exec(healthy: str, delay: int, more: Mapping[str, Any] | None = None, **probe: Any) -> dict[str, Any]:
    """Return pods/probe/exec-liveness.yaml from the Kubernetes documentation: healthy while the command `healthy` runs,
    unhealthy from then on.
    """
    script = f"touch /tmp/healthy; {healthy}; rm -f /tmp/healthy; exec sleep 600"
    check = command("cat", "/tmp/healthy", initialDelaySeconds=delay, **probe)
    return a_pod("liveness-exec", shell("liveness", script, livenessProbe=check, **(more or {})))


def pods() -> dict[str, dict[str, Any]]:
    """Return the pods of all tests, so that they run concurrently."""
    ready, healthy = command("cat", "/tmp/ready"), command("cat", "/tmp/healthy")
    # On a busy machine a probe may run before the script has begun.
    begins = {"startupProbe": {**healthy, "failureThreshold": NEVER}}
    return {
        "liveness": with_period(500, liveness_exec("until [ -e /tmp/ill ]; do sleep 0.1; done", 1, begins)),
        # The container becomes healthy after the liveness probe alone would have failed: the startup probe delays that
        # probe.
        "slow": with_period(
            300,
            a_pod(
                "slow-start",
                shell(
                    "app",
                    f"until [ -e /tmp/go ]; do sleep 0.1; done; touch /tmp/healthy; {STAYS}",
                    livenessProbe={**healthy, "failureThreshold": 1},
                    **begins,
                ),
            ),
        ),
        "never": with_period(
            200,
            a_pod(
                "never-starts",
                shell("app", STAYS, startupProbe={**healthy, "failureThreshold": 3}),
                restartPolicy="Never",
            ),
        ),
        "readiness": with_period(
            200, a_pod("readiness", shell("app", STAYS, readinessProbe={**ready, "failureThreshold": 2}))
        ),
        "grace": with_period(
            200,
            a_pod(
                "own-grace",
                shell(
                    "app",
                    IGNORES_TERM,
                    livenessProbe={**healthy, "failureThreshold": 1, "terminationGracePeriodSeconds": 2},
                ),
                terminationGracePeriodSeconds=300,
            ),
        ),
        "absent": with_period(300, a_pod("absent", shell("app", STAYS, readinessProbe=command("/no/such/program")))),
    }


@pytest.fixture(scope="module")
def node(docker_engine: PrivateDocker) -> Iterator[Node]:
    """One node with the pods of all tests."""
    with private_redis() as server, running_node(docker_engine, server.url, "probes", server.folder / "agent") as node:
        node.write("pods.yaml", *pods().values())
        yield node


def test_liveness_with_a_command(node: Node) -> None:
    began = started(node, "liveness-exec").started_at
    good = node.journal.wait_for_event(prober.ProbeSucceeded, pod="default/liveness-exec", probe="Liveness")
    assert good.at >= began + 1_000, "not before its delay"
    file_in(node, "liveness-exec", "/tmp/ill", "liveness").touch()
    killed = node.journal.wait_for_event(pod.ContainerStopRequested, pod="default/liveness-exec")
    bad = node.journal.events(prober.ProbeFailed, id=good.id, probe="Liveness")
    assert [(one.consecutive, one.threshold, one.code) for one in bad] == [(1, 3, 1), (2, 3, 1), (3, 3, 1)]
    assert bad[2].at - bad[0].at >= 500, "two periods, but the first of them may have begun late"
    assert killed.reason == "LivenessFailed"
    message = "Liveness probe failed: cat: can't open '/tmp/healthy': No such file or directory\n"
    assert ("Unhealthy", message) in node.kube_events("liveness-exec")
    assert ("Killing", "Container liveness failed liveness probe, will be restarted") in node.kube_events(
        "liveness-exec"
    )
    started(node, "liveness-exec", attempt=1)
    assert node.restarts("liveness-exec") == [1]
    words = ("#success=1 #failure=3\n      Period:       500ms\n      Result:       ", "Last Results:")

    def are_described() -> bool:
        described = node.chronolet("describe", "pod", "liveness-exec").out
        return all(one in described for one in words)

    node.journal.wait_for("results of its next attempt", are_described)


def test_a_slow_start_is_covered_by_the_startup_probe(node: Node) -> None:
    node.journal.wait_for_event(prober.ProbeFailed, pod="default/slow-start", probe="Startup")
    ready_at = time.time() * 1000
    file_in(node, "slow-start", "/tmp/go").touch()
    gate = node.journal.wait_for_event(prober.GateOpened, pod="default/slow-start", probe="Liveness")
    assert gate.from_at >= ready_at
    first = node.journal.wait_for_event(prober.ProbeSucceeded, pod="default/slow-start", probe="Liveness")
    assert first.at >= gate.from_at
    node.journal.wait_for("it to be ready", lambda: started_and_ready(node, "slow-start") == (True, True))
    assert node.restarts("slow-start") == [0]
    assert node.journal.events(prober.ProbeCounted, pod="default/slow-start", probe="Startup")[-1].held
    assert not node.journal.events(prober.ProbeFailed, pod="default/slow-start", probe="Liveness")


def test_a_container_that_never_starts_is_killed_and_not_restarted_by_policy_never(node: Node) -> None:
    exited = node.journal.wait_for_event(pod.ContainerExited, pod="default/never-starts")
    assert node.journal.events(pod.ContainerStopRequested, pod="default/never-starts")[0].reason == "StartupFailed"
    assert ("Killing", "Container app failed startup probe") in node.kube_events("never-starts")
    assert len(node.journal.events(prober.ProbeFailed, pod="default/never-starts")) == 3
    node.wait_for_status_column("never-starts", "Completed" if exited.exit_code == 0 else "Error")
    assert not node.journal.events(pod.RestartScheduled, pod="default/never-starts")


def test_readiness_with_a_command(node: Node) -> None:
    started(node, "readiness")
    node.journal.wait_for_event(prober.ProbeFailed, pod="default/readiness")
    assert started_and_ready(node, "readiness") == (True, False)
    file_in(node, "readiness", "/tmp/ready").touch()
    node.journal.wait_for("it to be ready", lambda: started_and_ready(node, "readiness") == (True, True))
    assert node.chronolet("get", "pods").line("readiness").split()[1] == "1/1"
    before = len(node.journal.events(prober.ProbeFailed, pod="default/readiness"))
    file_in(node, "readiness", "/tmp/ready").unlink()
    node.journal.wait_for("it to become unready", lambda: started_and_ready(node, "readiness") == (True, False))
    counts = [one.consecutive for one in node.journal.events(prober.ProbeFailed, pod="default/readiness")]
    assert counts[before : before + 2] == [1, 2]
    ready = next(one for one in pod_status(node.journal.pods["default/readiness"]).conditions if one.type == "Ready")
    assert (ready.status, ready.message) == ("False", "containers with unready status: [app]")
    assert node.restarts("readiness") == [0]


def test_a_probe_has_its_own_grace_period(node: Node) -> None:
    stop = node.journal.wait_for_event(pod.ContainerStopRequested, pod="default/own-grace")
    assert (stop.grace_period_seconds, stop.reason) == (2, "LivenessFailed")
    exited = node.journal.wait_for_event(pod.ContainerExited, pod="default/own-grace")
    assert exited.exit_code == 137


def test_a_missing_command_counts_as_a_failure(node: Node) -> None:
    """Docker starts the exec, whose command does not exist: the exit code is 126 or 127, as in a shell."""
    failed = node.journal.wait_for_event(prober.ProbeFailed, pod="default/absent")
    assert failed.code in (126, 127)
    assert started_and_ready(node, "absent") == (True, False)


def test_more_commands_than_the_machine_can_run_are_delayed_fairly(node: Node) -> None:
    """Eight containers request 160 probes a second, which takes about seven cores. Each gets its share, the delays are
    reported, and no container is restarted because of them.
    """
    names = [f"c{number}" for number in range(8)]
    probe = command("true", failureThreshold=2)
    node.write(
        "many.yaml", with_period(50, a_pod("many", *(shell(name, STAYS, livenessProbe=probe) for name in names)))
    )
    node.journal.wait_for(
        "reports of late probes of most containers",
        lambda: len(node.journal.events(prober.ProbeDelayed, pod="default/many")) >= 6,
    )

    def each_was_probed(least: int) -> bool:
        found = kept_results(node.environ["CHRONOLET_REDIS"], node.name)
        count = Counter(one.container for one in found if one.pod == "default/many")
        return min(count[name] for name in names) >= least

    node.journal.wait_for("five probes of each", lambda: each_was_probed(5))
    late = [one.late_milliseconds for one in node.journal.events(prober.ProbeDelayed, pod="default/many")]
    assert min(late) >= 50
    assert not node.journal.events(prober.ProbeFailed, pod="default/many")
    assert not node.journal.events(pod.ContainerStopRequested, pod="default/many")
    assert node.restarts("many") == [0] * len(names)


@pytest.mark.long
def test_liveness_with_the_times_of_the_documentation(docker_engine: PrivateDocker) -> None:
    """Healthy for 30 s, and probed every 5 s after a delay of 5 s: after 30 s there are three failures, five seconds
    apart, and then a kill.
    """
    with private_redis() as server, running_node(docker_engine, server.url, "doc", server.folder / "agent") as node:
        node.write("liveness.yaml", liveness_exec("sleep 30", 5, periodSeconds=5))
        began = started(node, "liveness-exec").started_at
        node.journal.wait_for_event(pod.ContainerStopRequested, seconds=90, pod="default/liveness-exec")
        bad = [one.at - began for one in node.journal.events(prober.ProbeFailed, pod="default/liveness-exec")]
        assert len(bad) == 3
        assert bad[0] >= 30_000
        assert bad[2] - bad[0] >= 5_000, "two periods, but the first of them may have begun late"
        started(node, "liveness-exec", attempt=1)
