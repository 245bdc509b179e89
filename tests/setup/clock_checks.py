"""The clock of a machine steps three hours ahead and back, under an agent, its engine and its Redis. Run by
cgroup2_machine_steps in a machine of its own; under another name than a test's, for no other machine may have its
clock set.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.attacks.clocks.clock_steps import check_steps
from tests.e2e.node import Node
from tests.support.docker import PrivateDocker
from tests.support.redis import private_redis

PERIOD = 5
"""In seconds: the processor is emulated."""


@pytest.fixture
def node(docker_engine: PrivateDocker) -> Iterator[Node]:
    """Its agent is not started yet."""
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
