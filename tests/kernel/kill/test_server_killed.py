"""Kills of a redis-server that keeps all acknowledged writes, and of one that loses the latest of them."""

import random

import pytest

from tests.kernel.kill import guarantees
from tests.kernel.kill.node import Times, attacked
from tests.support.redis.server import PrivateRedis


@pytest.mark.timeout(900)
def test_kills_of_a_server_that_keeps_all_writes_neither_lose_nor_repeat_an_input(
    redis_server: PrivateRedis, times: Times
) -> None:
    with attacked(redis_server) as node:
        for _ in times(15, 60):
            node.load()
            node.kill_server()
            if random.random() < 0.5:
                node.kill_worker()
        node.verdict(least=len(times(15, 60)) * 20)
        assert guarantees.losses(node.watcher.entries) == 0


@pytest.mark.timeout(900)
def test_owners_ahead_of_their_server_record_the_loss(forgetful_server: PrivateRedis, times: Times) -> None:
    """The remaining log is a prefix of the entries read before, and nothing acts on lost entries. Once the sender has
    resent unanswered commands, each command has taken effect exactly once and in order. The loss is recorded as an
    event.
    """
    with attacked(forgetful_server) as node:
        for number in times(6, 30):
            node.load()
            node.lose_tail()
            if number % 2:  # the other workers survive to record the loss
                node.kill_worker()
        node.verdict(least=len(times(6, 30)) * 20, lossless=False)
        assert node.done["server kills with loss"] > 0
        assert guarantees.losses(node.watcher.entries) > 0
