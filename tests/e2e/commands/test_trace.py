"""`chronolet trace` names in its first line what was slow: a pull, a full queue, a late probe. Real agent, Docker,
Redis and registry; all kinds are hosted. What is slow is held up by the test until it has been looked at.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from chronolet.adapters.probes.kept import kept_results
from chronolet_schemas import manifests, prober
from chronolet_schemas import pod as pods
from chronolet_schemas.prober import RawResult
from tests.e2e.node import Node, Said, pod, shell
from tests.integration.effects.registry import Registry
from tests.support.docker import PrivateDocker
from tests.support.docker_proxy import DockerProxy, docker_proxy
from tests.support.frozen import stopped
from tests.support.ports import free_port
from tests.support.scratch import HANG_SECONDS, hang_limit, wait_until

STALL_SECONDS = 1.8
"""More than a late probe is late by, less than the lease lasts: what is not allowed to probe is not late."""
LATE_MILLISECONDS = 1_000


@pytest.fixture
def proxy(docker_engine: PrivateDocker, own_node: Node) -> Iterator[DockerProxy]:
    """Between the agent and the engine."""
    with docker_proxy(docker_engine.host) as found:
        own_node.environ["DOCKER_HOST"] = found.host
        yield found


def started(node: Node, *flags: str) -> Node:
    """With pages, for its spans are asked for there."""
    node.start(free_port(), "--image-pull-progress-deadline", "1h", *flags)
    node.journal.wait_for_event(manifests.FolderRead)
    return node


def trace(node: Node, name: str, *options: str) -> Said:
    said = node.chronolet("trace", name, *options)
    assert said.status == 0, said.err
    return said


def first_line(node: Node, name: str) -> str:
    return trace(node, name).out.splitlines()[0]


def traced_with(node: Node, name: str, words: str) -> str:
    """The first line, once it has these words: spans and results of probes are written a moment after the log."""
    found = [""]

    def there() -> bool:
        found[0] = first_line(node, name)
        return words in found[0]

    try:
        wait_until(there, f"{words!r} in the first line of the trace of {name}")
    except TimeoutError as error:
        error.add_note(found[0])
        raise
    return found[0]


# -- slow pulls -------------------------------------------------------------------------------------------------------


def test_a_slow_pull_and_the_pull_that_waits_behind_it(own_node: Node, slow: Registry, quick: Registry) -> None:
    node = started(own_node)
    node.write("slow.yaml", pod("slow", shell("app", image=slow.reference)))
    assert slow.asked.wait(HANG_SECONDS)
    node.write("quick.yaml", pod("quick", shell("app", image=quick.reference)))
    behind = f"1 of at most 1 pull was running ({slow.reference})"
    line = traced_with(node, "pod/quick", behind)
    assert "has been starting for" in line
    assert f"queued before getting image {quick.reference} for container app: {behind}" in line

    line = traced_with(node, "slow", "its pull has been running for ")
    assert f"getting image {slow.reference} for container app: " in line
    slow.let_go.set()
    node.wait_until_running("slow", "quick")

    slowest, queued = first_line(node, "pod/slow"), first_line(node, "pod/quick")
    assert slowest.startswith("default/slow took ")
    assert f"getting image {slow.reference} for container app: pulled in " in slowest
    assert f"queued before getting image {quick.reference} for container app: {behind}" in queued

    node.kill9()
    started(node)
    wait_until(
        lambda: "the agent has no engine calls of this" in trace(node, "quick").err, "the answer of the new agent"
    )
    said = trace(node, "pod/quick")
    first, *steps = said.out.splitlines()
    assert "queued before getting image" in first
    assert f"s of waiting in the queue behind the pull of {slow.reference}" in first
    assert [one for one in steps if one.endswith("starting the sandbox")]


def test_no_pull_but_its_back_off(own_node: Node, quick: Registry) -> None:
    quick.status = 503
    node = started(own_node)
    node.write("away.yaml", pod("away", shell("app", image=quick.reference)))
    node.journal.wait_for_event(pods.ImageBackOffBegan)
    line = first_line(node, "away")
    assert line.startswith("default/away has been starting for ")
    said = trace(node, "away", "-o", "json").out
    waits = [one for one in json.loads(said)["steps"] if one["name"].startswith("waiting out the back-off of image")]
    assert waits[0]["note"].startswith(f"RegistryUnavailable: image pull failed for {quick.reference}")


# -- full queues ------------------------------------------------------------------------------------------------------


def test_a_full_queue_of_starts(own_node: Node, proxy: DockerProxy) -> None:
    node = started(own_node, "--max-parallel-starts", "1")
    held = proxy.hang(r"POST .*/containers/[^/]+/start")
    node.write("first.yaml", pod("first"))
    wait_until(lambda: bool(held.met), "the start that hangs")
    node.write("second.yaml", pod("second"))
    behind = "1 of at most 1 start was running (default/first)"
    line = traced_with(node, "pod/second", behind)
    assert line.startswith("default/second has been starting for ")
    assert f"queued before starting the sandbox: {behind}" in line
    hanging = traced_with(node, "first", "docker.start has not answered for")
    assert "starting the sandbox: docker.start has not answered for" in hanging
    held.lift()
    node.wait_until_running("first", "second")
    after = trace(node, "second")
    assert f"queued before starting the sandbox: {behind}" in after.out.splitlines()[0]
    assert after.err == ""


# -- late probes ------------------------------------------------------------------------------------------------------


def latest(node: Node, name: str) -> RawResult | None:
    """The probe of the pod that began latest, if one was late."""
    found = kept_results(node.environ["CHRONOLET_REDIS"], node.name)
    mine = [one for one in found if one.pod == f"default/{name}" and float(one.late_milliseconds) >= LATE_MILLISECONDS]
    return max(mine, key=lambda one: float(one.late_milliseconds), default=None)


def stalled(one: RawResult | None) -> bool:
    return one is not None and float(one.agent_late_milliseconds) >= float(one.late_milliseconds) / 2


def probed(name: str, *command: str, **more: Any) -> dict[str, Any]:
    probe = {"exec": {"command": list(command)}, "periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 1_000}
    return pod(name, shell("app", livenessProbe={**probe, **more}))


def test_a_probe_that_is_late_for_the_agent_stood_still(own_node: Node) -> None:
    node = started(own_node)
    node.write("probed.yaml", probed("probed", "true"))
    node.journal.wait_for_event(prober.ProbeSucceeded, pod="default/probed")
    until = time.monotonic() + hang_limit()
    while not stalled(latest(node, "probed")):
        assert time.monotonic() < until, "no probe was late for the agent stood still"
        with stopped([node.pid]):
            time.sleep(STALL_SECONDS)
        time.sleep(STALL_SECONDS)  # results are written once a second
    line = traced_with(node, "pod/probed", "agent or machine stalled for ")
    assert "default/probed: the liveness probe of container app began " in line
    assert " s late: agent or machine stalled for " in line


def test_a_probe_that_is_late_for_others_are_at_work(own_node: Node) -> None:
    """Commands that compute keep their places, of which there are few."""
    node = started(own_node)
    busy = "end=$(($(date +%s) + 4)); while [ $(date +%s) -lt $end ]; do :; done"
    hogs = [probed(f"hog{number}", "sh", "-c", busy) for number in range(8)]
    node.write("hogs.yaml", *hogs, probed("probed", "true"))
    node.wait_until_running("probed", *(f"hog{number}" for number in range(8)))
    names = ("probed", *(f"hog{number}" for number in range(8)))

    def one_waited() -> str:
        return next((name for name in names if (one := latest(node, name)) and not stalled(one)), "")

    name = node.journal.wait_for("a probe that waited for others", one_waited, 60)
    line = traced_with(node, f"pod/{name}", "running")
    assert f"default/{name}: the liveness probe of container app " in line


# -- what cannot be told ----------------------------------------------------------------------------------------------


def test_no_agent_no_pod_and_a_removed_one(own_node: Node) -> None:
    node = started(own_node)
    node.write("short.yaml", pod("short"))
    node.wait_until_running("short")
    assert trace(node, "short").err == ""
    (node.folder / "short.yaml").unlink()
    node.wait_until_gone("short")
    said = trace(node, "pod/short")
    assert said.out.startswith("default/short took ")
    assert said.err.startswith("note: default/short was removed ")

    missing = node.chronolet("trace", "pod/nobody")
    assert missing.status == 1
    assert missing.err.startswith(f'error: pods "nobody" not found: the log of node {node.name} has no entries about ')

    assert node.stop() == 0
    alone = trace(node, "short")
    steps = [line for line in said.out.splitlines()[1:] if "%    " not in line]
    assert alone.out.splitlines()[1:] == steps
    assert "note: no agent of the node is running: steps come from the log" in alone.err


def test_two_agents_of_a_node(own_node: Node) -> None:
    """One hosts the pods and has their calls, the other serves no pages."""
    kinds = "pod,pleg,manifests,prober,qos,keeper,kube_events,container_gc,image_gc"
    node = started(own_node, "--actors", kinds)
    node.beside("other", "devices")
    node.write("two.yaml", pod("two"))
    node.wait_until_running("two")
    said = trace(node, "two")
    assert "docker.start" in said.out
    wait_until(lambda: "HTTP server disabled" in trace(node, "two").err, "the note about the other agent")
