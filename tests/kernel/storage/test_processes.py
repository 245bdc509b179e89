"""The node's list of processes: processes with a lease are listed, dead ones are removed."""

from tests.kernel.storage.node import connect
from tests.support import scratch
from tests.support.redis.server import PrivateRedis


def test_processes_that_died_without_a_shard_are_removed_from_the_list(redis_server: PrivateRedis) -> None:
    store = connect(redis_server.url)
    try:
        store.renew("living", "all kinds", 3_600_000)
        for number in range(20):
            store.renew(f"dead{number}", "all kinds", 1)
        scratch.wait_until(lambda: store.alive().keys() == {"living"}, "the end of their leases")
        meta = "chronolet:{n}:meta"
        client = redis_server.client()
        assert client.hlen(meta) == 21
        store.forget_dead()
        assert client.hkeys(meta) == [b"process:living"]
        store.renew("dead1", "all kinds", 3_600_000)
        assert store.alive().keys() == {"living", "dead1"}, "a slow process is listed again"
    finally:
        store.close()
