"""A node that runs out of processes, file descriptors or network: afterwards nothing is lost, nothing was reported
incorrectly, and the same agent works.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from chronolet_schemas import pod as pods
from chronolet_schemas import prober
from tests.attacks.exhaustion.stalled_node import starts
from tests.attacks.probed_pods import PERIOD, probed, wait_for_probes
from tests.e2e.node import Node, pod, running_node, shell
from tests.support.docker.engine import PrivateDocker
from tests.support.machine.frozen import no_descriptor_left
from tests.support.redis.server import private_redis

MAX_PIDS = 60


@pytest.fixture(scope="module")
def node(docker_engine: PrivateDocker) -> Iterator[Node]:
    """A node in the engine's network, as on any host, with a limit on the number of processes per pod."""
    with private_redis() as server:
        root = server.folder / "agent"
        more = ("--pod-max-pids", str(MAX_PIDS))
        with running_node(docker_engine, server.url, "starved", root, in_network=True, more=more) as node:
            yield node


def redis_of(node: Node) -> Any:
    return redis.Redis.from_url(node.environ["CHRONOLET_REDIS"])


def wait_for_periods(node: Node, count: int) -> None:
    """Wait for `count` probe periods, measured by Redis's clock."""
    with redis_of(node) as client:
        began = client.time()[0]
        node.journal.wait_for(f"{count} periods", lambda: client.time()[0] > began + count * PERIOD)


def test_a_fork_bomb_stays_within_its_pod(node: Node) -> None:
    """No other container is affected, the agent responds, and the pod can be deleted."""
    node.write("quiet.yaml", pod("quiet"))
    node.wait_until_running("quiet")
    before = node.started_at("quiet")
    node.write("bomb.yaml", pod("bomb", shell("app", "f() { f | f & }; while true; do f; done")))
    # The pod's shell gives up, and once the next attempt has started, `--previous` shows its output.
    node.journal.wait_for_event(pods.ContainerStarted, pod="default/bomb", container="app", attempt=1)
    assert "can't fork" in node.chronolet("logs", "bomb", "--previous").out
    assert node.chronolet("get", "pods", "quiet").status == 0
    (node.folder / "bomb.yaml").unlink()
    node.wait_until_gone("bomb")
    assert node.started_at("quiet") == before
    assert node.restarts("quiet") == [0]


def test_an_agent_without_descriptors_loses_nothing(node: Node) -> None:
    """The container that dies during the shortage is restarted and counted once; the other one keeps running."""
    node.write("dies.yaml", pod("dies"))
    node.write("lives.yaml", probed("lives"))
    node.wait_until_running("dies", "lives")
    wait_for_probes(node, "lives", more=1)
    before, agent = node.started_at("lives"), node.pid
    with no_descriptor_left(agent):
        node.kill_process("dies", "app")
        node.write("late.yaml", pod("late"))
        wait_for_periods(node, 4)  # more than the failure threshold of the liveness probe
    node.journal.wait_for("the restart", lambda: len(starts(node, "dies")) > 1)
    node.wait_until_running("dies", "late", "lives")
    wait_for_probes(node, "lives", more=1)
    # A start that failed because the agent could not open anything also counts as an attempt.
    assert len(starts(node, "dies")) == 2
    assert node.restarts("dies") == starts(node, "dies")[1:]
    assert (node.runs, node.pid, node.started_at("lives")) == (True, agent, before)
    assert len(node.journal.events(pods.ContainerExited, pod="default/dies")) == 1
    assert not node.journal.events(prober.ProbeFailed, pod="default/lives")
    for name in ("dies", "lives", "late"):
        (node.folder / f"{name}.yaml").unlink()


def test_an_agent_without_a_network_restarts_nothing(node: Node) -> None:
    """The agent cannot reach its pods, but does not count this as their failure."""
    node.write("served.yaml", probed("served"))
    node.wait_until_running("served")
    wait_for_probes(node, "served", more=1)
    before = node.started_at("served")
    namespace = node.engine.namespace
    assert namespace.run("ip", "link", "set", "docker0", "down").returncode == 0
    try:
        node.journal.wait_for_event(prober.ProbeErrored, pod="default/served")
        wait_for_periods(node, 4)
    finally:
        assert namespace.run("ip", "link", "set", "docker0", "up").returncode == 0
    wait_for_probes(node, "served")
    assert node.started_at("served") == before
    assert not node.journal.events(pods.ContainerStopRequested, pod="default/served")
    (node.folder / "served.yaml").unlink()
    node.wait_until_gone("served")
