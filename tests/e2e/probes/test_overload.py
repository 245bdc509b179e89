"""Agent, engine and servers are paused for a while: no healthy container is restarted because of that, and a container
that hangs is restarted.

Agent, Docker and Redis are real. Signals pause the processes, so the load of this machine does not matter.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from chronolet.adapters.probes.results.reader import kept_results
from chronolet.prober.unjudged import LEAST
from chronolet_schemas import kube_events, pod, prober
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.support.machine.frozen import stopped
from tests.support.scratch import wait_until

SERVES = "trap 'exit 0' TERM; httpd -f -p 8080 & wait"
HTTP = {"httpGet": {"path": "/", "port": 8080}}
TCP = {"tcpSocket": {"port": 8080}}
EXEC = {"exec": {"command": ["true"]}}
OFTEN = {"periodSeconds": 1, "failureThreshold": 3}
SELDOM = {"periodSeconds": 5, "failureThreshold": 5, "timeoutSeconds": 1}
"""Fields of a probe that leave time to pause a server for one probe and resume it before five probes fail."""
STARTUP = {"startupProbe": {**TCP, "periodSeconds": 1, "timeoutSeconds": 300, "failureThreshold": 1_000_000}}
STALL_SECONDS = 1.4
"""Seconds of a stall: longer than the time-outs, and too short for the agent's lease to end."""
STALLS = 10
"""Maximum number of stalls. On a busy machine one may take so long that the lease ends, which cancels the probe."""
LIMIT_SECONDS = 60
"""Maximum time for which failures may be left unjudged, including those of a container that hangs."""
_ESTABLISHED = "01"
HEALTHY = ("http", "tcp", "exec")


def pods() -> list[dict[str, Any]]:
    page = "mkdir /tmp/w; echo ok > /tmp/w/index.html; cd /tmp/w; "
    return [
        a_pod("http", shell("app", page + SERVES, livenessProbe={**HTTP, **SELDOM}, **STARTUP)),
        a_pod("tcp", shell("app", SERVES, livenessProbe={**TCP, **OFTEN}, **STARTUP)),
        a_pod("exec", shell("app", SERVES, livenessProbe={**EXEC, **OFTEN}, **STARTUP)),
        a_pod("hangs", shell("app", page + SERVES, livenessProbe={**HTTP, **OFTEN}, **STARTUP)),
    ]


@pytest.fixture
def node(own_node: Node) -> Node:
    flags = (
        "--probe-overload-protection=true",
        f"--probe-unjudged-limit={LIMIT_SECONDS}s",
        "--probe-kill-hold=0s",
        "--probe-kills-per-minute=6000",
    )
    own_node.write("pods.yaml", *pods())
    own_node.start(0, *flags, in_network=True)
    return own_node


def processes(node: Node, name: str) -> list[int]:
    """Return the pids of a pod's app container."""
    return node.engine.processes()[node.running(name)["app"]["Id"]]


def has_client(pid: int) -> bool:
    """Return whether a client is connected to port 8080 in the network namespace of this process."""
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp6").read_text().splitlines()[1:]]
    rows += [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{8080:04X}") and row[3] == _ESTABLISHED for row in rows)


def first_success(node: Node, name: str) -> prober.ProbeSucceeded:
    return node.journal.wait_for_event(prober.ProbeSucceeded, pod=f"default/{name}", probe="Liveness")


def stall(node: Node, server: int) -> None:
    """Pause agent and engine for STALL_SECONDS in the middle of a probe of `server`, a process that does not answer."""
    while True:
        wait_until(lambda: has_client(server), "a probe that waits for its answer")
        with stopped([node.pid, node.engine.pid]):
            if has_client(server):  # and the probe had not ended before the agent was paused
                time.sleep(STALL_SECONDS)
                return


def unjudged_because_of_agent(node: Node) -> prober.ProbeUnjudged | None:
    found = node.journal.events(prober.ProbeUnjudged, pod="default/http")
    return next((one for one in found if "agent" in one.short_of), None)


def outcomes(node: Node, container: str) -> list[str]:
    """Return the outcomes of the container's liveness probe so far, oldest first."""
    newest_first = kept_results(node.environ["CHRONOLET_REDIS"], node.name)
    return [one.outcome for one in newest_first if one.id == container and one.probe == "Liveness"][::-1]


def unjudged_probe(node: Node) -> prober.ProbeUnjudged:
    """Stall the machine in the middle of a probe of `http`, whose server does not answer; return the event about it."""
    container = node.running("http")["app"]["Id"]
    servers = processes(node, "http")
    for _ in range(STALLS):
        with stopped(servers):
            before = len(outcomes(node, container))
            stall(node, servers[0])
            wait_until(lambda before=before: len(outcomes(node, container)) > before, "the end of the probe")  # type: ignore[misc]
            if "unjudged" in outcomes(node, container)[before:]:
                found: prober.ProbeUnjudged = node.journal.wait_for(
                    "the event", lambda: unjudged_because_of_agent(node)
                )
                return found
        wait_until(lambda: outcomes(node, container)[-1] == "success", "a success after the stall")
    raise AssertionError(f"no probe was left unjudged: {outcomes(node, container)}")


def test_a_stall_restarts_no_healthy_container_and_delays_others_within_the_limit(node: Node) -> None:
    for name in (*HEALTHY, "hangs"):
        first_success(node, name)
    unjudged = unjudged_probe(node)
    assert unjudged.stalled_milliseconds > 0
    node.journal.wait_for_event(kube_events.Recorded, reason="ProbeUnjudged", name="http")
    node.journal.wait_for(
        "a success again", lambda: node.journal.events(prober.ProbeSucceeded, id=unjudged.id)[-1].at > unjudged.at
    )

    with stopped(processes(node, "hangs")):
        stop = node.journal.wait_for_event(pod.ContainerStopRequested, 60, pod="default/hangs")
    assert stop.reason == "LivenessFailed"
    node.journal.wait_for_event(pod.ContainerStarted, pod="default/hangs", attempt=1)

    assert [node.restarts(name) for name in HEALTHY] == [[0]] * len(HEALTHY)
    assert {one.pod for one in node.journal.events(pod.ContainerStopRequested)} == {"default/hangs"}
    check_within_limit(node, stop.id)


def check_within_limit(node: Node, container: str) -> None:
    """Check that, between the last success and the stop, no more probes were left unjudged than the limit allows. The
    limit counts probes, since a slow machine probes less often.
    """
    (changed,) = node.journal.events(prober.ResultChanged, id=container, result="failure", consecutive=3)
    assert changed.threshold == 3
    url = node.environ["CHRONOLET_REDIS"]
    outcomes = [one.outcome for one in kept_results(url, node.name) if one.id == container]
    since_success = outcomes[: outcomes.index("success")] if "success" in outcomes else outcomes
    assert since_success.count("unjudged") <= max(LIMIT_SECONDS, LEAST) + 1, outcomes
