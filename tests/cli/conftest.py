"""The node that the tests of views look at, and an agent that answers commands."""

from collections.abc import Callable, Iterator

import pytest

from tests.cli import histories
from tests.cli.agent import Agent, Behaviour
from tests.cli.written import WrittenNode
from tests.support.patience import patient_stores

__all__ = ["patient_stores"]


@pytest.fixture
def node() -> WrittenNode:
    """web: app crashed twice and waits, side runs. db in another namespace is being made. gone has ended."""
    return histories.web()


@pytest.fixture
def agent(node: WrittenNode) -> Iterator[Callable[[Behaviour], Agent]]:
    agents = []

    def start(behaviour: Behaviour) -> Agent:
        agents.append(Agent(node, behaviour))
        agents[-1].start()
        return agents[-1]

    yield start
    for one in agents:
        one.stop()
