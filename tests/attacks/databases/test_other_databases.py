"""An agent that uses another node's database by mistake.

At the end every key of the other node is unchanged, the node's own pods run in the same containers, and its agent
works.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from chronolet.kernel.log.log_end import BLOCK_BYTES
from chronolet_schemas import kernel, kube_events, manifests
from chronolet_schemas import pod as pods
from chronolet_schemas.keys import NODES, Keys
from tests.attacks.attacked import check_well
from tests.e2e.node import Node, pod
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import PrivateRedis, private_redis


@pytest.fixture
def other_node(docker_engine: PrivateDocker) -> Iterator[tuple[Node, PrivateRedis]]:
    """Another node on the same engine, with a separate Redis."""
    with private_redis() as server:
        found = Node(docker_engine, server.url, f"other-{server.folder.name[-6:]}", server.folder / "agent")
        try:
            yield found, server
        finally:
            found.close()


def point_at(node: Node, server: PrivateRedis) -> None:
    """Make the node and its journal use another server, as with a wrong `--redis`."""
    node.environ["CHRONOLET_REDIS"] = server.url
    node.reopen_journal(server.url)


def keys_of(server: PrivateRedis, name: str) -> Mapping[bytes, Any]:
    """Return all keys of a node with their values, except leases, which change all the time."""
    client, found = server.client(), Keys(name)
    names = [key for key in client.scan_iter(f"{found.prefix}:*") if b":alive:" not in key]
    return {key: client.dump(key) for key in names}


def check_same_name(node: Node, server: PrivateRedis) -> None:
    """Check that the agent exits and leaves the log unchanged if its state folder records the log end of another run,
    later than the oldest entry of the server's log; and that it starts once the right log end is recorded again.
    """
    end, log = node.root / "log-end", Keys(node.name).log.encode()
    right, before = end.read_bytes(), keys_of(server, node.name)[log]
    another = {"node": node.name, "run": "f" * 32, "at": f"{round(time.time() * 1000)}-900"}
    end.write_text(json.dumps(another).ljust(BLOCK_BYTES))
    node.start()
    assert node.wait_for_end() != 0
    (error,) = [line for line in node.log.splitlines() if f"another node named {node.name}" in line]
    assert "f" * 32 in error
    assert keys_of(server, node.name)[log] == before
    end.write_bytes(right)
    node.start()


def test_an_agent_on_another_nodes_database_changes_none_of_its_keys(
    own_node: Node, redis_server: PrivateRedis, other_node: tuple[Node, PrivateRedis]
) -> None:
    """First use the database of a node with another name, since nodes with different names may share a server; then a
    log of another node with the same name.
    """
    other, other_server = other_node
    own_node.write("theirs.yaml", pod("theirs"))
    own_node.start()
    other.write("ours.yaml", pod("ours"))
    other.start()
    own_node.wait_until_running("theirs")
    other.wait_until_running("ours")
    theirs, ours = own_node.started_at("theirs"), other.started_at("ours")
    assert own_node.stop() == 0
    assert other.stop() == 0
    before = keys_of(redis_server, own_node.name)
    assert len(before) > 5

    # No call from the other node's agent may name a key of this node.
    admin = redis_server.client()
    admin.acl_log_reset()
    admin.acl_setuser("default", enabled=True, reset_keys=True, keys=[f"{Keys(other.name).prefix}:*", NODES])
    point_at(other, redis_server)
    other.start()
    other.wait_for_log("the whole log was lost")
    other.journal.wait_for_event(manifests.AdoptionFinished)
    assert other.journal.wait_for_event(kernel.LogLost).found == "0-0"
    other.journal.wait_for_event(kube_events.Recorded, reason="LogLost")
    other.write("later.yaml", pod("later"))
    other.wait_until_running("ours", "later")
    assert other.started_at("ours") == ours
    assert other.journal.events(pods.StrayFound) == []
    assert other.stop() == 0
    refused = [line["object"] for line in admin.acl_log()]
    admin.acl_setuser("default", enabled=True, keys=["*"])
    assert refused == []
    assert keys_of(redis_server, own_node.name) == before

    # Correct the mistake: the agent finds its former log again, but without the most recent entries.
    point_at(other, other_server)
    other.start()
    other.journal.wait_for_event(kernel.LogLost)
    other.wait_until_running("ours", "later")
    check_well(other)
    assert other.started_at("ours") == ours
    check_same_name(own_node, redis_server)
    own_node.wait_until_running("theirs")
    check_well(own_node)
    assert own_node.started_at("theirs") == theirs
    assert own_node.journal.events(kernel.LogLost) == []
