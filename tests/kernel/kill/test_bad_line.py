"""Replies that are lost and calls that arrive late, while workers are killed."""

import random

import pytest

from tests.kernel.kill.node import attacked, tell
from tests.kernel.kill.proxy import HOW, BadLine
from tests.kernel.kill.times import Times
from tests.support import scratch
from tests.support.redis.server import PrivateRedis


@pytest.mark.timeout(900)
def test_lost_replies_and_late_calls_lose_and_double_nothing(redis_server: PrivateRedis, times: Times) -> None:
    line = BadLine(redis_server.folder / "line", redis_server.socket, share=0.05)
    job = {"url": line.url, "step_timeout": 0.3}
    try:
        with attacked(redis_server, [job, {**job, "locks": False}], feeder_url=line.url) as node:
            for _ in times(20, 150):
                node.load()
                if random.random() < 0.5:
                    node.kill_worker()
            scratch.wait_until(lambda: all(line.done[f"step: {how}"] for how in HOW), "steps of which each went wrong")
            node.verdict(least=len(times(20, 150)) * 20)
    finally:
        line.close()
    tell("line", line.done)
    assert all(line.done[f"step: {how}"] > 0 for how in HOW)
