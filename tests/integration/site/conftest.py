"""The fixture `log`: a log without a recorded site, on a private Redis."""

from collections.abc import Iterator

import pytest

from tests.integration.site.support import Log
from tests.support.redis.server import PrivateRedis


@pytest.fixture
def log(redis_server: PrivateRedis) -> Iterator[Log]:
    found = Log(redis_server.url)
    yield found
    found.close()
