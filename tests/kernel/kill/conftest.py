"""How often: at least a hundred attacks in under three minutes; with --long as often as the guarantee says."""

from collections.abc import Iterator

import pytest

from tests.kernel.kill.times import Times
from tests.support.patience import be_patient
from tests.support.redis import PrivateRedis, private_redis


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who look, send and read along; the workers are processes of their own, with the agent's time-outs."""
    be_patient(monkeypatch)


@pytest.fixture
def times(pytestconfig: pytest.Config) -> Times:
    """`for _ in times(60, 500)`: 60 times, or 500 with --long."""
    return lambda usual, long: range(long if pytestconfig.getoption("--long") else usual)


@pytest.fixture
def forgetful_server() -> Iterator[PrivateRedis]:
    """A redis-server on `everysec` whose fsync can be slowed down, so that kill -9 loses what it had acknowledged."""
    with private_redis(appendfsync="everysec", slow_fsync=True) as server:
        yield server
