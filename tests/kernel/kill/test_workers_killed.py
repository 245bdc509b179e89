"""Workers that die and workers that sleep through their lease, on a server that keeps all acknowledged writes."""

import random

import pytest

from tests.kernel.kill import story
from tests.kernel.kill.node import attacked
from tests.kernel.kill.times import Times
from tests.support.redis.server import PrivateRedis

JOBS = [{"locks": True}, {"locks": True}, {"locks": False}]


@pytest.mark.timeout(900)
def test_no_kill_of_a_worker_loses_or_doubles_an_input(redis_server: PrivateRedis, times: Times) -> None:
    with attacked(redis_server, JOBS) as node:
        for _ in times(80, 450):
            node.load()
            node.kill_worker()
        node.verdict(least=len(times(80, 450)) * 20)


@pytest.mark.timeout(900)
def test_who_sleeps_through_his_lease_is_fenced(redis_server: PrivateRedis, times: Times) -> None:
    with attacked(redis_server, JOBS) as node:
        for _ in times(12, 110):
            node.load()
            node.stop_worker()
            if random.random() < 0.3:
                node.kill_worker()
        words = node.verdict(least=len(times(12, 110)) * 20)
    assert words["fenced"] > 0


@pytest.mark.timeout(900)
def test_a_recovery_longer_than_the_lease_keeps_it(redis_server: PrivateRedis, times: Times) -> None:
    with attacked(redis_server, [{"slow_recovery": 0.8, "locks": False}, {"slow_recovery": 0.8}], workers=2) as node:
        for _ in times(8, 50):
            node.load()
            node.kill_worker()
        node.verdict(least=len(times(8, 50)) * 20)
        assert story.longest_recovery(story.diaries(node.folder)) > 0.8, (
            "twice the lease, and the shard was still its own"
        )
