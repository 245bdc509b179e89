"""Workers that are drained, replaced and killed under load: shards move without losing or repeating an input."""

import random

import pytest

from tests.kernel.kill.node import Times, attacked
from tests.support.redis.server import PrivateRedis

LEASE = {"lease_milliseconds": 900}
JOBS = [{"locks": True, **LEASE}, {"locks": True, **LEASE}, {"locks": False, **LEASE}]


@pytest.mark.timeout(1800)
def test_moves_neither_lose_nor_repeat_an_input(redis_server: PrivateRedis, times: Times) -> None:
    with attacked(redis_server, JOBS) as node:
        for _ in times(12, 200):
            node.load()
            random.choice((node.drain_worker, node.drain_worker, node.replace_worker, node.kill_worker))()
        node.done["moves"] = node.moves()
        assert node.done["moves"] > len(times(12, 200)), node.done
        node.verdict(least=len(times(12, 200)) * 20)
