"""Workers that die and workers that sleep through their lease, on a server that keeps all it acknowledged."""

from tests.kernel.kill.node import attacked
from tests.support.redis import PrivateRedis


def test_no_kill_of_a_worker_loses_or_doubles_an_input(redis_server: PrivateRedis) -> None:
    with attacked(redis_server, [{"locks": True}, {"locks": True}, {"locks": False}]) as node:
        for _ in range(60):
            node.load()
            node.kill_worker()
        node.verdict(least=3000)
