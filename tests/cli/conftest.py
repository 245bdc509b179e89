"""The node that the tests of views look at, and an agent that answers commands."""

from collections.abc import Callable, Iterator

import pytest

from chronolet.kernel import redis_reader, redis_scan, redis_store
from tests.cli import histories
from tests.cli.agent import Agent, Behaviour
from tests.cli.written import WrittenNode
from tests.support.scratch import HANG_SECONDS


@pytest.fixture(autouse=True)
def patient_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the stores of this process no answer of a Redis is late."""
    for name in ("STEP_TIMEOUT_SECONDS", "LEASE_TIMEOUT_SECONDS", "QUERY_TIMEOUT_SECONDS"):
        monkeypatch.setattr(redis_store, name, HANG_SECONDS)
    monkeypatch.setattr(redis_reader, "_MARGIN_SECONDS", HANG_SECONDS)
    monkeypatch.setattr(redis_scan, "_TIMEOUT_SECONDS", HANG_SECONDS)


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
