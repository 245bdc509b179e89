"""The clock of a machine steps three hours ahead and back, under an agent, its engine and its Redis.
cgroup2_machine_steps runs this file in a machine of its own; its name is not a test's, since no other machine's clock
may be set.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.attacks.clocks.clock_steps import check_steps
from tests.e2e.node import Node
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import private_redis

PERIOD = 5
"""In seconds; long, since the processor is emulated."""


@pytest.fixture
def node(docker_engine: PrivateDocker) -> Iterator[Node]:
    """A node whose agent is not started yet."""
    with private_redis() as server:
        node = Node(docker_engine, server.url, "clock", server.folder / "agent")
        try:
            yield node
        finally:
            node.close()


def test_a_step_of_the_machines_clock_restarts_nothing(node: Node) -> None:
    ahead = 0

    def step(seconds: int) -> None:
        nonlocal ahead
        time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds - ahead)
        ahead = seconds

    try:
        check_steps(node, step, period=PERIOD, wait_for_loops=True)
    finally:
        step(0)
