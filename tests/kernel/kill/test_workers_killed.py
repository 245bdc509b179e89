"""Workers that are killed, or stopped for longer than their leases last. The server keeps all acknowledged writes."""

import random

import pytest

from tests.kernel.kill import guarantees
from tests.kernel.kill.node import Times, attacked
from tests.support.redis.server import PrivateRedis

JOBS = [{"locks": True}, {"locks": True}, {"locks": False}]


@pytest.mark.timeout(900)
def test_kills_of_workers_neither_lose_nor_repeat_an_input(redis_server: PrivateRedis, times: Times) -> None:
    with attacked(redis_server, JOBS) as node:
        for _ in times(80, 450):
            node.load()
            node.kill_worker()
        node.verdict(least=len(times(80, 450)) * 20)


@pytest.mark.timeout(900)
def test_a_worker_stopped_for_longer_than_its_lease_is_fenced(redis_server: PrivateRedis, times: Times) -> None:
    with attacked(redis_server, JOBS) as node:
        for _ in times(12, 110):
            node.load()
            node.stop_worker()
            if random.random() < 0.3:
                node.kill_worker()
        calls = node.verdict(least=len(times(12, 110)) * 20)
    assert calls["fenced"] > 0


@pytest.mark.timeout(900)
def test_the_lease_is_kept_during_a_recovery_longer_than_it(redis_server: PrivateRedis, times: Times) -> None:
    with attacked(redis_server, [{"slow_recovery": 0.8, "locks": False}, {"slow_recovery": 0.8}], workers=2) as node:
        for _ in times(8, 50):
            node.load()
            node.kill_worker()
        node.verdict(least=len(times(8, 50)) * 20)
        assert guarantees.longest_recovery(guarantees.calls_of(node.folder)) > 0.8, (
            "a recovery of twice the lease kept its shard"
        )
