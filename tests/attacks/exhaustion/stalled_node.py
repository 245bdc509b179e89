"""A node that stalls for a while: no healthy container is restarted, containers that die meanwhile are restarted and
counted once, and the agent stays the same.

Input: an engine of its own. Output: the node, its processes, `unaffected`. Next: `test_stalls`.
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
"""More than twice the agent's disk reserve, and room for the images."""
HEALTHY = ("tcp", "exec")


@pytest.fixture(scope="module")
def engine() -> Iterator[PrivateDocker]:
    """An engine on a disk of its own: no other test is affected by its stalls."""
    with private_docker(disk_megabytes=DISK_MEGABYTES) as engine:
        yield engine


@pytest.fixture(scope="module")
def node(engine: PrivateDocker) -> Iterator[Node]:
    """A node whose state folder, with its own Redis, is on a disk of its own. Its probes are protected, as by
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
    """dockerd and its containerd."""
    below = scratch.children(node.engine.pid)
    return [node.engine.pid, *(pid for pid in below if comm(pid) == "containerd")]


def comm(pid: int) -> str:
    """The process's name, empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def starts(node: Node, name: str) -> list[int]:
    """The attempts at which the pod's app was started."""
    return [one.attempt for one in node.journal.events(pods.ContainerStarted, pod=f"default/{name}", container="app")]


@contextmanager
def unaffected(node: Node, name: str) -> Iterator[None]:
    """Kill a container of pod `<name>-dies`, create pod `<name>-late`, and stall the node in the body. Then check that
    the first one was restarted once, the second one runs, and healthy pods are as before.
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
    # An engine without descriptors may refuse to start them at first: that is an attempt, too.
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
