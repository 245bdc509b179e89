"""Keys of the wrong type, stale or unreadable snapshots, a full disk: nothing is lost, and nothing is half written."""

import signal

from chronolet.kernel.storage.store import Snapshot
from chronolet_schemas.keys import Keys, Shard
from tests.kernel.kill.node import ALL_SHARDS, NODE, Node, attacked
from tests.support.redis.server import PrivateRedis, private_redis

KEYS = Keys(NODE)
SHARD = Shard("tally", 1)
CORRUPTED = {
    "log": KEYS.log,
    "meta": KEYS.meta,
    "shard": KEYS.shard(SHARD),
    "another shard": KEYS.shard(Shard("mirror", 0)),
    "mailbox": KEYS.mailbox(SHARD),
    "snapshot": KEYS.snapshot(SHARD),
}


def test_keys_of_the_wrong_type_only_delay_work(redis_server: PrivateRedis) -> None:
    with attacked(redis_server, [{"snapshot_events": 50}]) as node:
        for key in CORRUPTED.values():
            node.load()
            node.corrupt(key)
            node.kill_worker()
        node.verdict(least=200)
        assert node.done["corrupted keys"] == len(CORRUPTED)


def test_a_process_that_starts_while_a_key_has_the_wrong_type_waits_for_its_repair(redis_server: PrivateRedis) -> None:
    with attacked(redis_server) as node:
        node.load()

        def replace() -> None:
            _replace_all_workers(node)
            node.wait_for_log_line("waiting for the server")

        node.corrupt(KEYS.meta, replace)
        node.load()
        node.verdict(least=40)


def test_a_lease_key_of_the_wrong_type_only_delays_work(redis_server: PrivateRedis) -> None:
    with attacked(redis_server) as node:
        node.load()
        node.corrupt(KEYS.alive(max(node.owners())))
        node.load()
        node.verdict(least=40)


def test_stale_and_unreadable_snapshots_have_no_effect(redis_server: PrivateRedis) -> None:
    with attacked(redis_server, [{"snapshot_events": 50}]) as node:
        node.load(500, 600)
        before = {shard: head.token for shard, head in node.store.heads(ALL_SHARDS).items()}
        _replace_all_workers(node)
        node.load()
        for shard in ALL_SHARDS:
            _offer_stale_snapshots(node, shard, before[shard])
        node.load()
        client = redis_server.client()
        client.hset(KEYS.snapshot(SHARD), mapping={"position": str(node.store.last()), "state": b"\xc1 garbage"})
        client.hset(KEYS.snapshot(Shard("tally", 2)), "format", 99)
        _replace_all_workers(node)
        node.load()
        node.verdict(least=600)


def _offer_stale_snapshots(node: Node, shard: Shard, former: str) -> None:
    token = node.store.heads([shard])[shard].token
    assert token != former
    kept = node.store.read_snapshots([shard]).get(shard)
    assert kept is not None, f"{shard} has no snapshot yet"
    assert not node.store.snapshot(shard, former, Snapshot(node.store.last(), 1, b"\x80"))
    assert not node.store.snapshot(shard, token, Snapshot(kept.position, 1, b"\x80"))
    later = node.store.read_snapshots([shard]).get(shard)
    assert later is not None
    assert later.position >= kept.position
    assert later.state != b"\x80"


def _replace_all_workers(node: Node) -> None:
    for _ in list(node.farm.live):
        node.farm.kill9(node.farm.live[0])
        node.done["worker kills"] += 1
    for _ in range(3):
        node.start_worker()


def test_a_server_that_ends_on_a_full_disk_has_kept_all_acknowledged_writes() -> None:
    with private_redis(disk=48 << 20) as server, attacked(server) as node:
        for _ in range(2):
            node.load()
            filler = server.fill_disk()
            assert server.wait_for_end() != -signal.SIGKILL
            filler.unlink()
            server.start()
            node.done["server kills"] += 1
        node.load()
        node.verdict(least=60)


def test_work_waits_while_a_server_refuses_writes_on_a_full_disk() -> None:
    with private_redis(disk=48 << 20, appendfsync="everysec") as server, attacked(server) as node:
        node.load()
        filler = server.fill_disk()
        node.wait_for_log_line("MISCONF")
        filler.unlink()
        node.load()
        node.verdict(least=40)
