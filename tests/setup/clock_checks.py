"""A machine's clock jumps three hours ahead and back while an agent, its engine and its Redis are running.

cgroup2_machine_steps runs this file on a separate machine. It is not named test_*.py, because it must not set the clock
of any other machine.
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
"""The period of probes in seconds; long, because the processor is emulated."""


@pytest.fixture
def node(docker_engine: PrivateDocker) -> Iterator[Node]:
    """A node whose agent has not been started yet."""
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
