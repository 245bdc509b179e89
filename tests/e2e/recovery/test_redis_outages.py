"""A Redis that is unusable or becomes unreachable: there is one clear error, the agent retries where that may help, and
no running container is lost.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from redis.exceptions import ResponseError

from chronolet.kernel.storage.store import StoreUnreachable
from chronolet_schemas import kernel
from chronolet_schemas import pod as pods
from chronolet_schemas.keys import Keys, Shard
from tests.e2e.node import Node, pod
from tests.support.docker.engine import PrivateDocker
from tests.support.log_lines import most_repeated
from tests.support.redis.server import PrivateRedis, RedisOptions, private_redis
from tests.support.scratch import HANG_SECONDS


@contextmanager
def node_on(engine: PrivateDocker, url: str, root: Path, name: str) -> Iterator[Node]:
    node = Node(engine, url, name, root / name)
    try:
        node.start()
        yield node
    finally:
        node.close()


def test_the_agent_waits_for_a_redis_that_starts_later(own_node: Node, redis_server: PrivateRedis) -> None:
    redis_server.stop()
    own_node.write("early.yaml", pod("early"))
    own_node.start()
    line = own_node.wait_for_log("waiting for the server")
    assert str(redis_server.socket) in line
    assert "Traceback" not in own_node.log
    redis_server.start()
    own_node.wait_until_running("early")


REFUSED: dict[str, tuple[RedisOptions, str]] = {
    "password": (RedisOptions(requirepass="right"), "password"),
    "evicting": (RedisOptions(maxmemory_policy="allkeys-lru"), "noeviction"),
    "replica": (RedisOptions(more=("--replicaof", "127.0.0.1", "1")), "read-only replica"),
}
"""The server's options and a word of the agent's error, by name of the fault."""


@pytest.mark.parametrize("fault", REFUSED)
def test_an_unusable_redis_is_refused_with_one_line(fault: str, docker_engine: PrivateDocker, tmp_path: Path) -> None:
    options, text = REFUSED[fault]
    with private_redis(options) as server, node_on(docker_engine, f"unix://{server.socket}", tmp_path, fault) as node:
        assert node.wait_for_end() == 1
        line = node.wait_for_log("cannot run")
        assert text in line
        assert str(server.socket) in line
        assert "Traceback" not in node.log


def test_a_killed_redis_loses_nothing(own_node: Node, redis_server: PrivateRedis) -> None:
    own_node.write("stays.yaml", pod("stays"))
    own_node.start()
    own_node.wait_until_running("stays")
    before = own_node.started_at("stays")
    redis_server.kill9()
    assert str(redis_server.socket) in own_node.wait_for_log("cannot be reached")
    own_node.write("later.yaml", pod("later"))
    gone = own_node.chronolet("get", "pods")
    assert (gone.status, gone.err.count("\n")) == (1, 1), gone
    assert str(redis_server.socket) in gone.err
    own_node.kill_process("stays", "app")
    redis_server.start()
    own_node.journal.wait_for_event(pods.ContainerStarted, pod="default/stays", container="app", attempt=1)
    own_node.wait_until_running("later", "stays")
    after = own_node.started_at("stays")
    assert len(before.items() & after.items()) == 1, "the sandbox was touched"
    assert own_node.journal.events(kernel.TailLost) == []
    warnings = [line for line in own_node.log.splitlines() if "warning" in line or "error" in line]
    # Each shard that wants to write reports the error once; how many do depends on timing.
    assert 0 < most_repeated(warnings) <= 2, own_node.log
    assert len(warnings) < 60, own_node.log
    assert "Traceback" not in own_node.log
    assert own_node.runs


def test_the_agent_waits_for_a_full_redis(own_node: Node, redis_server: PrivateRedis) -> None:
    own_node.write("stays.yaml", pod("stays"))
    own_node.start()
    own_node.wait_until_running("stays")
    before, client = own_node.started_at("stays"), redis_server.client(timeout=HANG_SECONDS)
    client.config_set("maxmemory", 1)
    own_node.write("later.yaml", pod("later"))
    assert "raise its maxmemory" in own_node.wait_for_log("is full")
    refused = own_node.chronolet("delete", "pod", "none")
    assert (refused.status, refused.err.count("\n")) == (1, 1), refused
    assert "raise its maxmemory" in refused.err
    client.config_set("maxmemory", 0)
    own_node.wait_until_running("stays", "later")
    assert own_node.started_at("stays") == before
    assert own_node.journal.events(kernel.HostRestarted) == []
    assert own_node.runs


def test_an_emptied_redis_gets_a_new_log_and_no_container_is_touched(
    own_node: Node, redis_server: PrivateRedis
) -> None:
    own_node.write("stays.yaml", pod("stays"))
    own_node.start()
    own_node.wait_until_running("stays")
    before = own_node.started_at("stays")
    run = own_node.journal.wait_for_event(kernel.LogStarted).run
    redis_server.client(timeout=HANG_SECONDS).flushall()
    # The next write makes the agent notice the loss; without it, the agent would notice within a minute.
    own_node.write("later.yaml", pod("later"))
    own_node.reopen_journal()
    assert own_node.journal.wait_for_event(kernel.LogStarted).run != run
    own_node.wait_until_running("stays", "later")
    assert own_node.chronolet("get", "pods").line("stays").split()[:4] == ["stays", "1/1", "Running", "0"]
    assert own_node.started_at("stays") == before
    own_node.kill_process("stays", "app")
    own_node.journal.wait_for_event(pods.ContainerStarted, pod="default/stays", attempt=1)


def put_into_log(node: Node, client: Any, entry: dict[Any, Any]) -> None:
    """Append an entry to the log, although the agent writes concurrently."""
    while True:
        with suppress(StoreUnreachable, ResponseError):  # the server is stalled, or another entry came first
            millisecond, number = node.journal.store.last()
            client.xadd(Keys(node.name).log, entry, id=f"{millisecond}-{number + 1}")
            return


def test_undecodable_entries_are_quarantined(own_node: Node, redis_server: PrivateRedis) -> None:
    own_node.start()
    own_node.journal.wait_for_event(kernel.LogStarted)
    own_node.write("first.yaml", pod("first"))
    own_node.wait_until_running("first")
    keys, client = Keys(own_node.name), redis_server.client(timeout=HANG_SECONDS)
    entry: dict[Any, Any] = {
        "type": "pleg.ContainerDied@1",
        "entity": "pleg/node",
        "subject": "",
        "actor": "x#1",
        "cause": "",
    }
    put_into_log(own_node, client, entry | {"data": msgspec.msgpack.encode({"pod": 7})})
    mail: dict[Any, Any] = {"type": "manifests.NoSuch@9", "entity": "manifests/node", "request": "odd", "data": b"\xc1"}
    client.xadd(keys.mailbox(Shard("manifests")), mail)
    quarantined = own_node.journal.wait_for(
        "the quarantine of both",
        lambda: (
            {one.source: one for one in own_node.journal.events(kernel.EntryQuarantined)}.keys() >= {"log", "mailbox"}
        ),
    )
    assert quarantined
    for one in own_node.journal.events(kernel.EntryQuarantined):
        assert one.message.partition("@")[0] in ("pleg.ContainerDied", "manifests.NoSuch")
        assert one.error
    assert int(client.xlen(keys.dead)) >= 2
    own_node.write("second.yaml", pod("second"))
    own_node.wait_until_running("first", "second")
    assert own_node.chronolet("log").status == 0
    own_node.kill9()
    own_node.start()
    own_node.write("third.yaml", pod("third"))
    own_node.wait_until_running("third")
