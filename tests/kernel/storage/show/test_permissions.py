"""Users that may only read can call the functions that show a log, also on replicas, clusters and full servers."""

from __future__ import annotations

import os
import subprocess

import pytest
import redis

from tests.docs.markdown import ROOT, Page
from tests.kernel.storage import node
from tests.kernel.storage.show.replies import call
from tests.support.ports import free_port
from tests.support.redis.server import PrivateRedis, private_redis
from tests.support.scratch import wait_until

CALLS = (
    ("chronolet_show_2", node.KEYS.log),
    ("chronolet_pod_1", node.KEYS.log, "web"),
    ("chronolet_actors_1", node.KEYS.meta),
)


@pytest.fixture
def filled(redis_server: PrivateRedis) -> PrivateRedis:
    """A server with a log to which one shard has written."""
    fill(redis_server)
    return redis_server


def fill(server: PrivateRedis) -> None:
    store = node.connect(server.url)
    token = node.begin(store)
    store.step(node.fitting(store, token, 3))
    store.close()


def as_user(server: PrivateRedis, *rules: str) -> redis.Redis:
    """Return a client that logs in as a new user with these ACL rules."""
    server.client().execute_command("ACL", "SETUSER", "reader", "reset", "on", ">secret", *rules)
    return redis.Redis(unix_socket_path=str(server.socket), username="reader", password="secret")


READING = [
    ("%R~chronolet:*", "+@read", "+fcall_ro", "+time"),
    ("%R~chronolet:*", "+@read", "+fcall_ro"),
    ("~*", "+@all", "-@write", "-@dangerous"),
]


@pytest.mark.parametrize("rules", READING, ids=str)
def test_a_user_that_may_only_read_can_call_them(filled: PrivateRedis, rules: tuple[str, ...]) -> None:
    with as_user(filled, *rules) as client:
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.set("chronolet:x", "y")
        for function, key, *arguments in CALLS:
            assert call(client, function, key, *arguments).lines, function
        ages = call(client, "chronolet_actors_1", node.KEYS.meta, "SHARD", "pod/0").of("age_milliseconds")
        assert [age is None for age in ages] == ["+time" not in rules and "+@all" not in rules]


def test_the_user_that_the_page_creates_can_call_them(filled: PrivateRedis) -> None:
    (command,) = [block.text for block in Page(ROOT / "docs" / "redis-cli.md").blocks() if "ACL SETUSER" in block.text]
    environment = os.environ | {"SOCKET": str(filled.socket)}
    assert subprocess.check_output(["bash", "-c", command], env=environment, text=True).strip() == "OK"
    path = str(filled.socket)
    with redis.Redis(unix_socket_path=path, username="reader", password="choose-a-password") as client:
        for function, key, *arguments in CALLS:
            assert call(client, function, key, *arguments).lines, function
        assert client.memory_usage(node.KEYS.log)
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.fcall("chronolet_retire_1", 2, node.KEYS.alive("p"), node.KEYS.meta, "p")
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.delete(node.KEYS.log)


def test_a_user_of_other_keys_is_refused_in_readable_text(filled: PrivateRedis) -> None:
    with as_user(filled, f"~{node.KEYS.meta}", "+@read", "+fcall_ro") as client:
        with pytest.raises(redis.exceptions.NoPermissionError):
            call(client, "chronolet_show_2", node.KEYS.log)
        with pytest.raises(redis.ResponseError, match=r"chronolet_actors_1: .*key"):
            call(client, "chronolet_actors_1", node.KEYS.meta)


def test_they_work_on_a_replica() -> None:
    port = free_port()
    with private_redis(port=port) as master, private_redis(more=("--replicaof", f"127.0.0.1 {port}")) as replica:
        fill(master)
        client = replica.client()
        wait_until(lambda: client.info("replication")["master_link_status"] == "up", "the replica's link")
        assert master.client().wait(1, 0) == 1
        for function, key, *arguments in CALLS:
            on_replica, on_master = (call(one, function, key, *arguments) for one in (client, master.client()))
            assert on_replica.lines
            assert [line.get("data") for line in on_replica.lines] == [line.get("data") for line in on_master.lines]
            assert on_replica.summary["begins"] == on_master.summary["begins"]
        with pytest.raises(redis.ReadOnlyError):
            client.set("x", "y")


def test_they_work_on_a_cluster() -> None:
    """A cluster refuses keys of another hash slot. All keys that `chronolet_actors_1` reads have the same slot."""
    with private_redis(more=("--cluster-enabled", "yes", "--cluster-port", str(free_port()))) as server:
        client = server.client()
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"), "the cluster")
        fill(server)
        for function, key, *arguments in CALLS:
            assert call(client, function, key, *arguments).lines, function


def test_they_work_on_a_full_server(filled: PrivateRedis) -> None:
    client = filled.client()
    client.config_set("maxmemory", 1)
    with pytest.raises(redis.OutOfMemoryError):
        client.set("x", "y")
    for function, key, *arguments in CALLS:
        assert call(client, function, key, *arguments).lines, function


def test_the_server_is_told_that_they_write_nothing(filled: PrivateRedis) -> None:
    (found,) = filled.client().function_list(library="chronolet_show")
    library = dict(zip(found[::2], found[1::2], strict=True))
    functions = [dict(zip(one[::2], one[1::2], strict=True)) for one in library[b"functions"]]
    assert {one[b"name"].decode() for one in functions} == {function for function, *_ in CALLS}
    assert all(one[b"flags"] == [b"no-writes"] for one in functions)
