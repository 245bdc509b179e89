"""The first line of `chronolet trace` names what was slow: a pull, a full queue, a late probe.

Agent, Docker, Redis and registry are real, with all actors. The tests of a slow pull and of a full queue block the slow
operation until they have inspected the trace.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from chronolet.adapters.probes.results.reader import kept_results
from chronolet_schemas import manifests, prober
from chronolet_schemas import pod as pods
from chronolet_schemas.prober import RawResult
from tests.e2e.node import CommandResult, Node, pod, shell
from tests.integration.effects.registry import Registry
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.proxy import DockerProxy, docker_proxy
from tests.support.machine.frozen import stopped
from tests.support.ports import free_port
from tests.support.scratch import HANG_SECONDS, hang_limit, wait_until

STALL_SECONDS = 1.8
"""Seconds of a pause: long enough for a probe to count as late, but shorter than the lease, because without a lease no
probe runs, so none is late.
"""
LATE_MILLISECONDS = 1_000


@pytest.fixture
def proxy(docker_engine: PrivateDocker, own_node: Node) -> Iterator[DockerProxy]:
    """A proxy between the agent and the engine."""
    with docker_proxy(docker_engine.host) as found:
        own_node.environ["DOCKER_HOST"] = found.host
        yield found


def started(node: Node, *flags: str) -> Node:
    """Start the agent with HTTP pages, which provide its spans."""
    node.start(free_port(), "--image-pull-progress-deadline", "1h", *flags)
    node.journal.wait_for_event(manifests.FolderRead)
    return node


def trace(node: Node, name: str, *options: str) -> CommandResult:
    result = node.chronolet("trace", name, *options)
    assert result.status == 0, result.err
    return result


def first_line(node: Node, name: str) -> str:
    return trace(node, name).out.splitlines()[0]


def wait_for_first_line(node: Node, name: str, text: str) -> str:
    """Return the first line once it contains the text: spans and probe results are written a moment after the log."""
    found = [""]

    def is_found() -> bool:
        found[0] = first_line(node, name)
        return text in found[0]

    try:
        wait_until(is_found, f"{text!r} in the first line of the trace of {name}")
    except TimeoutError as error:
        error.add_note(found[0])
        raise
    return found[0]


# -- slow pulls -------------------------------------------------------------------------------------------------------


def test_a_slow_pull_and_a_pull_queued_behind_it(own_node: Node, slow: Registry, quick: Registry) -> None:
    node = started(own_node)
    node.write("slow.yaml", pod("slow", shell("app", image=slow.reference)))
    assert slow.half_sent.wait(HANG_SECONDS)
    node.write("quick.yaml", pod("quick", shell("app", image=quick.reference)))
    reason = f"1 of at most 1 pull was running ({slow.reference})"
    line = wait_for_first_line(node, "pod/quick", reason)
    assert "has been starting for" in line
    assert f"queued before getting image {quick.reference} for container app: {reason}" in line

    line = wait_for_first_line(node, "slow", "its pull has been running for ")
    assert f"getting image {slow.reference} for container app: " in line
    slow.released.set()
    node.wait_until_running("slow", "quick")

    slowest, queued = first_line(node, "pod/slow"), first_line(node, "pod/quick")
    assert slowest.startswith("default/slow took ")
    assert f"getting image {slow.reference} for container app: pulled in " in slowest
    assert f"queued before getting image {quick.reference} for container app: {reason}" in queued

    node.kill9()
    started(node)
    wait_until(
        lambda: "the agent has no engine calls of this" in trace(node, "quick").err,
        "the trace without the former agent's calls",
    )
    result = trace(node, "pod/quick")
    first, *steps = result.out.splitlines()
    assert "queued before getting image" in first
    assert f"s of waiting in the queue behind the pull of {slow.reference}" in first
    assert [one for one in steps if one.endswith("starting the sandbox")]


def test_the_back_off_of_a_failed_pull(own_node: Node, quick: Registry) -> None:
    quick.status = 503
    node = started(own_node)
    node.write("away.yaml", pod("away", shell("app", image=quick.reference)))
    node.journal.wait_for_event(pods.ImageBackOffBegan)
    line = first_line(node, "away")
    assert line.startswith("default/away has been starting for ")
    result = trace(node, "away", "-o", "json").out
    waits = [one for one in json.loads(result)["steps"] if one["name"].startswith("waiting out the back-off of image")]
    assert waits[0]["note"].startswith(f"RegistryUnavailable: image pull failed for {quick.reference}")


# -- full queues ------------------------------------------------------------------------------------------------------


def test_a_full_start_queue(own_node: Node, proxy: DockerProxy) -> None:
    node = started(own_node, "--max-parallel-starts", "1")
    fault = proxy.hang(r"POST .*/containers/[^/]+/start")
    node.write("first.yaml", pod("first"))
    wait_until(lambda: bool(fault.met), "the start that hangs")
    node.write("second.yaml", pod("second"))
    reason = "1 of at most 1 start was running (default/first)"
    line = wait_for_first_line(node, "pod/second", reason)
    assert line.startswith("default/second has been starting for ")
    assert f"queued before starting the sandbox: {reason}" in line
    hanging = wait_for_first_line(node, "first", "docker.start has not answered for")
    assert "starting the sandbox: docker.start has not answered for" in hanging
    fault.lift()
    node.wait_until_running("first", "second")
    after = trace(node, "second")
    assert after.err == ""
    steps = json.loads(trace(node, "second", "-o", "json").out)["steps"]
    durations = {step["name"]: step["ended"] - step["began"] for step in steps}
    start = next(step for step in steps if step["name"] == "starting the sandbox")
    (queued,) = (span for span in start["spans"] if span.get("queue", {}).get("holders") == ["default/first"])
    # On a busy machine, the rest of the start may take longer than the queue did.
    was_slow = durations["starting the sandbox"] == max(durations.values())
    because_queued = was_slow and queued["milliseconds"] > durations["starting the sandbox"] / 2
    assert (f"queued before starting the sandbox: {reason}" in after.out.splitlines()[0]) == because_queued


# -- late probes ------------------------------------------------------------------------------------------------------


def latest_late_probe(node: Node, name: str) -> RawResult | None:
    """Return the pod's late probe with the longest delay, or None if none was late."""
    found = kept_results(node.environ["CHRONOLET_REDIS"], node.name)
    late = [one for one in found if one.pod == f"default/{name}" and float(one.late_milliseconds) >= LATE_MILLISECONDS]
    return max(late, key=lambda one: float(one.late_milliseconds), default=None)


def wait_for_result(node: Node, name: str, since: float) -> None:
    """Wait for the stored result of a probe of this pod that began after `since` (seconds since the epoch): results are
    written once a second.
    """

    def is_stored() -> bool:
        found = kept_results(node.environ["CHRONOLET_REDIS"], node.name)
        return any(one.pod == f"default/{name}" and float(one.at) >= since * 1000 for one in found)

    wait_until(is_stored, f"the result of a later probe of {name}")


def stalled(one: RawResult | None) -> bool:
    return one is not None and float(one.agent_late_milliseconds) >= float(one.late_milliseconds) / 2


def probed(name: str, *command: str, **more: Any) -> dict[str, Any]:
    probe = {"exec": {"command": list(command)}, "periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 1_000}
    return pod(name, shell("app", livenessProbe={**probe, **more}))


def test_a_probe_late_because_the_agent_was_paused(own_node: Node) -> None:
    node = started(own_node)
    node.write("probed.yaml", probed("probed", "true"))
    node.journal.wait_for_event(prober.ProbeSucceeded, pod="default/probed")
    until = time.monotonic() + hang_limit()
    while not stalled(latest_late_probe(node, "probed")):
        assert time.monotonic() < until, "no probe was late because of the paused agent"
        with stopped([node.pid]):
            time.sleep(STALL_SECONDS)
        wait_for_result(node, "probed", time.time())
    line = wait_for_first_line(node, "pod/probed", "agent or machine stalled for ")
    assert "default/probed: the liveness probe of container app began " in line
    assert " s late: agent or machine stalled for " in line


def test_a_probe_late_because_others_run(own_node: Node) -> None:
    """Commands of busy probes occupy the few slots for commands."""
    node = started(own_node)
    busy = "end=$(($(date +%s) + 4)); while [ $(date +%s) -lt $end ]; do :; done"
    hogs = [probed(f"hog{number}", "sh", "-c", busy) for number in range(8)]
    node.write("hogs.yaml", *hogs, probed("probed", "true"))
    node.wait_until_running("probed", *(f"hog{number}" for number in range(8)))
    names = ("probed", *(f"hog{number}" for number in range(8)))

    def delayed_pod() -> str:
        return next((name for name in names if (one := latest_late_probe(node, name)) and not stalled(one)), "")

    name = node.journal.wait_for("a probe that waited for other probes", delayed_pod, 60)
    line = wait_for_first_line(node, f"pod/{name}", "running")
    assert f"default/{name}: the liveness probe of container app " in line


# -- missing information ----------------------------------------------------------------------------------------------


def test_a_removed_pod_an_unknown_pod_and_no_agent(own_node: Node) -> None:
    node = started(own_node)
    node.write("short.yaml", pod("short"))
    node.wait_until_running("short")
    assert trace(node, "short").err == ""
    (node.folder / "short.yaml").unlink()
    node.wait_until_gone("short")
    result = trace(node, "pod/short")
    assert result.out.startswith("default/short took ")
    assert result.err.startswith("note: default/short was removed ")

    missing = node.chronolet("trace", "pod/nobody")
    assert missing.status == 1
    assert missing.err.startswith(f'error: pods "nobody" not found: the log of node {node.name} has no entries about ')

    assert node.stop() == 0
    alone = trace(node, "short")
    steps = [line for line in result.out.splitlines()[1:] if "%    " not in line]
    assert alone.out.splitlines()[1:] == steps
    assert "note: no agent of the node is running: steps come from the log" in alone.err


def test_two_agents_of_one_node(own_node: Node) -> None:
    """One agent hosts the pods and makes their calls; the other serves no pages."""
    kinds = "pod,pleg,manifests,prober,qos,keeper,kube_events,container_gc,image_gc"
    node = started(own_node, "--actors", kinds)
    node.start_other("other", "devices")
    node.write("two.yaml", pod("two"))
    node.wait_until_running("two")
    result = trace(node, "two")
    assert "docker.start" in result.out
    wait_until(lambda: "HTTP server disabled" in trace(node, "two").err, "the note about the other agent")
