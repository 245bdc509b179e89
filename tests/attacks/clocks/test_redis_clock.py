"""The wall clock of Redis jumps by hours while an agent runs pods.

At the end every log entry is there and in order, the containers are the same, and the agent works.
"""

from __future__ import annotations

import time
from itertools import pairwise

from chronolet_schemas import kernel
from chronolet_schemas import pod as pods
from chronolet_schemas.times import time_of
from tests.e2e.node import Node, pod, running_node, shell
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import private_redis

HOUR = 3600
STEPS = (5 * HOUR, -3 * HOUR, 0)
"""Settings of the server's clock, in seconds ahead of the machine's: ahead, behind, and right again."""
PROBED = shell("app", livenessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1, "timeoutSeconds": 30})
UNWANTED = (kernel.LogLost, kernel.TailLost, kernel.HostRestarted, kernel.MessageDeadLettered, pods.StrayFound)


def work(node: Node, name: str) -> None:
    """Start a pod, kill its container, wait for the next one, and remove the pod."""
    path = node.write(f"{name}.yaml", pod(name))
    node.wait_until_running(name)
    node.kill_process(name, "app")
    node.journal.wait_for_event(pods.ContainerStarted, pod=f"default/{name}", container="app", attempt=1)
    node.wait_until_running(name)
    path.unlink()
    node.wait_until_gone(name)
    assert node.runs


def test_steps_of_the_clock_of_redis_lose_nothing(docker_engine: PrivateDocker) -> None:
    with (
        private_redis(clock=True) as server,
        running_node(docker_engine, server.url, "rc", server.folder / "a") as node,
    ):
        node.write("steady.yaml", pod("steady", PROBED))
        node.write("timed.yaml", pod("timed", activeDeadlineSeconds=4 * HOUR))
        node.wait_until_running("steady", "timed")
        before = node.started_at("steady", "timed")
        assert len(before) == 4
        for number, ahead in enumerate(STEPS):
            server.step_clock(ahead)
            work(node, f"step-{number}")
        # Start an agent while the clock is wrong, after the previous agent was killed.
        node.kill9()
        server.step_clock(-7 * HOUR)
        node.start()
        work(node, "killed")
        server.step_clock(0)
        work(node, "last")
        positions = [line.entry.position for line in node.journal.lines]
        assert all(one < other and one.n + 1 == other.n for one, other in pairwise(positions))
        # Positions are still hours ahead, but times are right again.
        last = node.journal.lines[-1].entry
        hours = [round((at / 1000 - time.time()) / HOUR) for at in (last.position.milliseconds, time_of(last))]
        assert hours == [max(STEPS) // HOUR, 0]
        assert [one for kind in UNWANTED for one in node.journal.events(kind)] == []
        assert len({one.former_owner for one in node.journal.events(kernel.ShardTakenOver)}) == 1
        assert node.started_at("steady", "timed") == before
        assert "Traceback" not in node.log
