"""Lost replies and calls that arrive late, while workers are killed."""

import random

import pytest

from tests.kernel.kill.bad_line import FATES, BadLine
from tests.kernel.kill.node import Times, attacked, report
from tests.support import scratch
from tests.support.redis.server import PrivateRedis


@pytest.mark.timeout(900)
def test_lost_replies_and_late_calls_neither_lose_nor_repeat_an_input(redis_server: PrivateRedis, times: Times) -> None:
    line = BadLine(redis_server.folder / "line", redis_server.socket, share=0.05)
    job = {"url": line.url, "step_timeout": 0.3}
    try:
        with attacked(redis_server, [job, {**job, "locks": False}], sender_url=line.url) as node:
            for _ in times(20, 150):
                node.load()
                if random.random() < 0.5:
                    node.kill_worker()
            scratch.wait_until(lambda: all(line.done[f"step: {fate}"] for fate in FATES), "steps with each fate")
            node.verdict(least=len(times(20, 150)) * 20)
    finally:
        line.close()
    report("line", line.done)
    assert all(line.done[f"step: {fate}"] > 0 for fate in FATES)
