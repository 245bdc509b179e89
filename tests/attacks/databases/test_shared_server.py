"""The kernel without pods, on a Redis shared with another node and on one whose wall clock jumps by hours.

At the end nothing is lost, nothing was reported incorrectly, and the process works. No engine is needed: key names and
lease expiry do not depend on pods.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest
import redis

from chronolet.kernel.clock import Clock
from chronolet.kernel.hosting.process import Process, Setup
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import START, Event
from chronolet_schemas.keys import Keys, Shard
from tests.kernel import chore
from tests.kernel.chore import Assign
from tests.kernel.rig import request
from tests.support import scratch
from tests.support.redis.server import PrivateRedis, private_redis

CHORE = Shard("chore")
HOUR = 3600
E = TypeVar("E", bound=Event)


class LoneProcess:
    """The process of a node without pods, and the node's log."""

    def __init__(self, server: PrivateRedis, node: str, folder: Path) -> None:
        self.node = node
        self.store = RedisStore(server.url, node)
        self.clock = Clock()
        self.process = Process(
            Setup(
                clock=self.clock,
                node=node,
                store=RedisStore(server.url, node),
                kinds={"chore": chore.kind(watches_clock=True)},
                shards={"chore": 1},
                locks=folder / "locks",
                log_end=folder / "log-end",
            )
        )
        self.process.start()
        scratch.wait_until(lambda: self.process.phase == "running", "the process at work")

    def ahead_seconds(self) -> float:
        """Return how many seconds the process's clock is ahead of the machine's."""
        return self.clock.now() / 1000 - time.time()

    def send(self, **fields: Any) -> None:
        """Send a command and wait until it has been decided. `one_shot` names an effect that the command requests."""
        before = len(self.events(chore.Assigned))
        command = Assign(request=request(), key="a", **fields)
        sent = self.store.send(CHORE, registry.type_of(Assign), "chore/a", command.request, codec.encode(command))
        assert sent == "sent"
        scratch.wait_until(lambda: len(self.events(chore.Assigned)) > before, "its decision")

    def events(self, event: type[E]) -> list[E]:
        name = registry.type_of(event)
        return [codec.decode(one.type, one.data, event) for one in self.store.scan(START) if one.type == name]


@contextmanager
def lone_process(server: PrivateRedis, node: str, folder: Path) -> Iterator[LoneProcess]:
    found = LoneProcess(server, node, folder)
    try:
        yield found
    finally:
        found.process.retire()
        found.store.close()


def keys_of(server: PrivateRedis, node: str) -> Mapping[bytes, Any]:
    """Return all keys of a node with their values."""
    client = server.client()
    return {key: client.dump(key) for key in client.scan_iter(f"{Keys(node).prefix}:*")}


@pytest.fixture
def shared() -> Iterator[PrivateRedis]:
    with private_redis(clock=True) as server:
        yield server


def test_no_call_names_a_key_of_another_node(shared: PrivateRedis, tmp_path: Path) -> None:
    with lone_process(shared, "theirs", tmp_path / "theirs") as theirs:
        theirs.send(one_shot="w")
    before = keys_of(shared, "theirs")
    assert len(before) >= 3
    with private_redis() as own, lone_process(own, "ours", tmp_path / "ours") as ours:
        ours.send(one_shot="w")
    # From here on, the server refuses and records each call that names a key of another node.
    admin = shared.client()
    admin.acl_setuser("default", enabled=True, reset_keys=True, keys=[f"{Keys('ours').prefix}:*"])
    with pytest.raises(redis.exceptions.NoPermissionError):
        admin.hgetall(Keys("theirs").meta)
    assert [line["object"] for line in admin.acl_log()] == [Keys("theirs").meta]
    admin.acl_log_reset()
    with lone_process(shared, "ours", tmp_path / "ours") as ours:
        ours.send(one_shot="w")
        scratch.wait_until(lambda: ours.events(chore.Completed) != [], "its effect")
        (lost,) = ours.events(kernel.LogLost)
        assert (lost.node, lost.found) == ("ours", "0-0")
    assert admin.acl_log() == []
    admin.acl_setuser("default", enabled=True, keys=["*"])
    assert keys_of(shared, "theirs") == before
    with lone_process(shared, "theirs", tmp_path / "theirs") as theirs:
        theirs.send(one_shot="w")
        assert theirs.events(kernel.LogLost) == []


def test_steps_of_the_wall_clock_lose_nothing(shared: PrivateRedis, tmp_path: Path) -> None:
    steps = (0, 5 * HOUR, -3 * HOUR, 0)
    with lone_process(shared, "n", tmp_path) as node:
        for number, ahead in enumerate(steps, start=1):
            shared.step_clock(ahead)
            node.send(one_shot=f"w{number}", due=number)
            scratch.wait_until(lambda number=number: len(node.events(chore.Fired)) == number, "its timer")  # type: ignore[misc]
            scratch.wait_until(lambda number=number: len(node.events(chore.Completed)) == number, "its effect")  # type: ignore[misc]
            scratch.wait_until(node.process.lease.valid, "a lease that holds")
            assert abs(node.ahead_seconds()) < HOUR, "it follows its own machine's clock"
    shared.step_clock(-7 * HOUR)
    with lone_process(shared, "n", tmp_path) as node:
        node.send()
        assert abs(node.ahead_seconds()) < HOUR
        positions = [one.position for one in node.store.scan(START)]
        assert all(one < other and one.n + 1 == other.n for one, other in pairwise(positions))
        for unwanted in (kernel.LogLost, kernel.TailLost, kernel.HostRestarted, kernel.ShardTakenOver):
            assert node.events(unwanted) == []
