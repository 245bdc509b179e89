"""The stores to which the contract applies: the Redis store and the in-memory store."""

from collections.abc import Iterator

import pytest

from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import (
    Snapshot,
    Store,
)
from chronolet_schemas.envelope import START, Position
from tests.contracts.store.support import KEEPER, SHARD, SHARDS, STARTED, TTL, Another, commit, take
from tests.support.patience import be_patient


@pytest.fixture(params=["memory", "redis"])
def another(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Another]:
    """Return a function that opens another store of the same node, as another process would."""
    made: list[Store] = []
    if request.param == "memory":
        server = MemoryServer()

        def make() -> Store:
            made.append(MemoryStore(server))
            return made[-1]
    else:
        redis = request.getfixturevalue("redis_server")
        be_patient(monkeypatch)

        def make() -> Store:
            made.append(RedisStore(redis.url, "n"))
            made[-1].check()
            return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(another: Another) -> Store:
    return another()


@pytest.fixture
def begun(store: Store) -> Store:
    store.begin("run-1", SHARDS, STARTED)
    store.renew("p", "all kinds", TTL)
    return store


@pytest.fixture
def long_log(begun: Store) -> tuple[Store, str, list[Position]]:
    """Return a store with 1,001 entries, all of them consumed, archived and covered by a snapshot; the keeper's token;
    the positions.
    """
    token = take(begun)
    for turn in range(10):
        commit(begun, token, 100, step_id=str(turn))
    commit(begun, token, 0, new_log_cursor=begun.last(), step_id="moved")
    assert begun.snapshot(SHARD, token, Snapshot(begun.last(), 1, b""))
    keeper = take(begun, KEEPER)
    assert begun.mark_archived(KEEPER, keeper, begun.last())
    return begun, keeper, [entry.position for entry in begun.scan(START)]
