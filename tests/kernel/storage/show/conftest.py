"""A redis-server on which the functions of the store are loaded, for the tests in this folder."""

from collections.abc import Iterator

import pytest
import redis

from tests.kernel.storage.node import connect
from tests.support.redis.server import private_redis


@pytest.fixture(scope="module")
def shared_client() -> Iterator[redis.Redis]:
    with private_redis(appendfsync="no") as server:
        connect(server.url).close()
        yield server.client()


@pytest.fixture
def client(shared_client: redis.Redis) -> redis.Redis:
    """A client of an empty server on which the functions are loaded."""
    shared_client.flushall()
    return shared_client
