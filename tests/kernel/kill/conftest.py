"""Fixtures of the kill suite. By default there are at least a hundred attacks, in under three minutes; with --long,
several times as many.
"""

from collections.abc import Iterator

import pytest

from tests.kernel.kill.node import Times
from tests.support.redis.server import PrivateRedis, private_redis


@pytest.fixture
def times(pytestconfig: pytest.Config) -> Times:
    """Return a function: `times(60, 500)` is a range of 60 numbers, or of 500 with --long."""
    return lambda usual, long: range(long if pytestconfig.getoption("--long") else usual)


@pytest.fixture
def forgetful_server() -> Iterator[PrivateRedis]:
    """A redis-server with appendfsync `everysec` whose fsync can be slowed down: kill -9 loses acknowledged writes."""
    with private_redis(appendfsync="everysec", slow_fsync=True) as server:
        yield server
