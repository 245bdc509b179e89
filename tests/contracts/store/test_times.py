"""The contract of times: once the server's clock is no longer ahead, new entries have their real times immediately."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest

from chronolet.kernel.storage.memory_data import MemoryServer, wall_milliseconds
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Committed, Store
from chronolet_schemas import codec, kernel
from chronolet_schemas.envelope import START, Entry, Event, Record
from chronolet_schemas.times import time_of
from tests.contracts.store.support import SHARDS, STARTED, TTL, step, take
from tests.support.redis.server import private_redis

HOUR = 3_600_000
SLACK = 600_000
"""The largest error that a stall of the machine may cause in a time, in milliseconds."""


class Server:
    """A store and its server, whose clock can be stepped."""

    def __init__(self, store: Store, step: object) -> None:
        self.store = store
        self._step = step

    def step_clock(self, milliseconds: int) -> None:
        assert callable(self._step)
        self._step(milliseconds)


@pytest.fixture(params=["memory", "redis"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param == "memory":
        ahead = [0]
        memory = MemoryServer(clock=lambda: wall_milliseconds() + ahead[0])
        yield Server(MemoryStore(memory), lambda by: ahead.__setitem__(0, by))
        return
    with private_redis(clock=True) as redis:
        store = RedisStore(redis.url, "n")
        store.check()
        yield Server(store, lambda by: redis.step_clock(by // 1000))
        store.close()


class Writer:
    """The owner of a shard, which writes one event at a time."""

    def __init__(self, server: Server) -> None:
        self._store = server.store
        self._store.begin("run-1", SHARDS, STARTED)
        self._store.renew("p", "all kinds", TTL)
        self._token = take(self._store)

    def write(self, event: Event) -> Entry:
        record = Record("kernel.ClockJumped@1", "pod/default/web", "", "pod/0#1", "", codec.encode(event))
        before = self._store.last()
        wanted = step(self._store, self._token, step_id=f"step-{before.n}", records=(record,))
        assert isinstance(self._store.step(wanted), Committed)
        (entry,) = self._store.read_log(before, 10)
        return entry


def test_times_are_right_again_as_soon_as_the_clock_is(server: Server) -> None:
    writer, jumped = Writer(server), kernel.ClockJumped(by_milliseconds=5)
    steps = {"right": 0, "ahead": HOUR, "right again": 0, "behind": -HOUR, "right at last": 0}
    entries = {}
    for name, by in steps.items():
        server.step_clock(by)
        entries[name] = writer.write(jumped)
        assert abs(time_of(entries[name]) - (wall_milliseconds() + by)) < SLACK, name
    log = list(server.store.scan(START))
    assert [entry.position.n for entry in log] == list(range(1, len(log) + 1))
    assert all(one.position < other.position for one, other in pairwise(log))
    assert {entry.position.milliseconds for entry in log[2:]} == {entries["ahead"].position.milliseconds}
    # Only entries whose positions are ahead of their times have the field `_time`; all decode to the same event.
    assert [name for name, entry in entries.items() if b"_time" in entry.data] == list(steps)[2:]
    assert all(codec.decode(entry.type, entry.data, Event) == jumped for entry in entries.values())
    fields = msgspec.msgpack.decode(entries["behind"].data)
    assert fields == {"by_milliseconds": 5, "_time": time_of(entries["behind"])}
