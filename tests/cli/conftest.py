"""Fixtures: a node with a hand-written log, and scripted agents that answer commands."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.support import histories
from tests.cli.support.agent import Agent, Behaviour
from tests.cli.support.log_owner import LogOwner
from tests.cli.support.written_node import WrittenNode
from tests.support.patience import patient_stores
from tests.support.redis.server import PrivateRedis

__all__ = ["patient_stores"]


@pytest.fixture
def node() -> WrittenNode:
    """A node with these pods: web, whose container app is in a crash loop and whose container side is running; db in
    namespace data, which is starting; and gone, which has ended.
    """
    return histories.web()


@pytest.fixture
def agent(node: WrittenNode) -> Iterator[Callable[[Behaviour], Agent]]:
    """A function that starts an agent with a given behaviour. All agents are stopped after the test."""
    agents = []

    def start(behaviour: Behaviour) -> Agent:
        agents.append(Agent(node, behaviour))
        agents[-1].start()
        return agents[-1]

    yield start
    for one in agents:
        one.stop()


@pytest.fixture
def owner(redis_server: PrivateRedis, tmp_path: Path) -> Iterator[LogOwner]:
    owning = LogOwner(redis_server, tmp_path)
    yield owning
    owning.store.close()
