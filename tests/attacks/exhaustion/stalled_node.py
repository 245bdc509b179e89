"""A node that stalls for a while: no healthy container is restarted, containers that die during the stall are restarted
and counted once, and the same agent keeps running.

Input: a private engine. Output: the node, its processes, `unaffected`. Next: `test_stalls`.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chronolet.adapters.redis_server.server import OwnServer
from chronolet_schemas import kernel
from chronolet_schemas import pod as pods
from tests.attacks.probed_pods import PERIOD, outcomes, probed, wait_for_probes
from tests.e2e.node import Node, pod, shell
from tests.support import scratch
from tests.support.docker.engine import PrivateDocker, mount_disk, private_docker

DISK_MEGABYTES = 400
"""Size of each disk: more than twice the agent's disk reserve, plus space for the images."""
HEALTHY = ("tcp", "exec")


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateDocker]:
    """An engine on a separate disk, so that its stalls affect no other test."""
    with private_docker(disk_megabytes=DISK_MEGABYTES) as engine:
        yield engine


@pytest.fixture(scope="module")
def node(engine: PrivateDocker) -> Iterator[Node]:
    """A node whose state folder, including its Redis, is on a separate disk. Its probes have overload protection, as by
    default.
    """
    folder = scratch.create("stalls")
    mount_disk(folder / "state", DISK_MEGABYTES)
    root = folder / "state" / "agent"
    server = OwnServer(root)
    node = Node(engine, server.url, "stalled", root)
    for name in ("CHRONOLET_REDIS", "CHRONOLET_PROBE_OVERLOAD_PROTECTION"):
        del node.environ[name]
    liveness = {"exec": {"command": ["true"]}, "periodSeconds": 1, "failureThreshold": 3}
    try:
        node.write("healthy.yaml", probed("tcp", timeout=PERIOD), pod("exec", shell("app", livenessProbe=liveness)))
        node.start(0, in_network=True)
        node.wait_until_running(*HEALTHY)
        yield node
    finally:
        node.close()
        server.stop()
        scratch.unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


def redis_pid(node: Node) -> int:
    found = OwnServer(node.root).pid()
    assert found is not None
    return found


def engine_pids(node: Node) -> list[int]:
    """Return the process ids of dockerd and its containerd."""
    below = scratch.children(node.engine.pid)
    return [node.engine.pid, *(pid for pid in below if comm(pid) == "containerd")]


def comm(pid: int) -> str:
    """Return the process's name, or an empty string if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def starts(node: Node, name: str) -> list[int]:
    """Return the numbers of the attempts that were started for the pod's container `app`."""
    return [one.attempt for one in node.journal.events(pods.ContainerStarted, pod=f"default/{name}", container="app")]


@contextmanager
def unaffected(node: Node, name: str) -> Iterator[None]:
    """Kill a container of pod `<name>-dies` and create pod `<name>-late`; the body stalls the node. Then check that the
    container was restarted once, the new pod is running, and no container of a healthy pod was restarted.
    """
    dies, late = f"{name}-dies", f"{name}-late"
    node.write(f"{dies}.yaml", pod(dies))
    node.wait_until_running(dies)
    wait_for_probes(node, *HEALTHY, more=1)
    before, agent, redis = node.started_at(*HEALTHY), node.pid, redis_pid(node)
    pid = node.running(dies)["app"]["State"]["Pid"]
    node.write(f"{late}.yaml", pod(late))
    os.kill(pid, signal.SIGKILL)
    yield
    node.journal.wait_for(f"the restart of {dies}", lambda: len(starts(node, dies)) > 1, 60)
    node.wait_until_running(dies, late, *HEALTHY)
    wait_for_probes(node, *HEALTHY)
    assert node.started_at(*HEALTHY) == before, [outcomes(node, one)[:20] for one in HEALTHY]
    assert [node.restarts(one) for one in HEALTHY] == [[0]] * len(HEALTHY)
    # An engine without free file descriptors may refuse to start a container at first: that counts as an attempt, too.
    assert (len(starts(node, dies)), len(starts(node, late))) == (2, 1)
    assert node.restarts(dies) == starts(node, dies)[1:]
    (end,) = node.journal.events(pods.ContainerExited, pod=f"default/{dies}")
    assert (end.attempt, end.exit_code) == (0, 137)
    for one in (*HEALTHY, late, dies):
        assert not node.journal.events(pods.ContainerStopRequested, pod=f"default/{one}")
    assert not node.journal.events(kernel.TailLost)
    assert (node.runs, node.pid, redis_pid(node)) == (True, agent, redis)
    assert "Traceback" not in node.log
    for one in (dies, late):
        (node.folder / f"{one}.yaml").unlink()
        node.wait_until_gone(one)
