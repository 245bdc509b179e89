"""Renewals on a real server: processes of former releases, and keys of the wrong type."""

from collections.abc import Iterator

import pytest

from chronolet.kernel.ownership.watch import CounterWatch
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Acquired, Beat, NotFree, Renewed, StoreBroken
from chronolet_schemas.keys import Shard
from tests.kernel.storage.node import KEYS, SHARD, begin, connect
from tests.support.redis.server import PrivateRedis

OTHER = Shard("pod", 1)


@pytest.fixture
def store(redis_server: PrivateRedis) -> Iterator[RedisStore]:
    made = connect(redis_server.url)
    yield made
    made.close()


class FormerRelease:
    """A process that owns SHARD and renews its lease as a release without counters does."""

    def __init__(self, store: RedisStore, redis_server: PrivateRedis) -> None:
        begin(store)
        self.client = redis_server.client()
        taken = store.acquire(SHARD, store.heads([SHARD])[SHARD].token, "former", 1, proof="lock")
        assert isinstance(taken, Acquired)
        self.token = taken.head.token

    def renew(self, milliseconds: int = 3_600_000) -> None:
        self.client.fcall("chronolet_renew_1", 2, KEYS.alive("former"), KEYS.meta, "former", "info", milliseconds)


def test_a_former_release_is_watched_by_the_expiry_of_its_key(store: RedisStore, redis_server: PrivateRedis) -> None:
    """The watched value moves while the process renews its key. One time-to-live after it stops, a death is proven."""
    former, now = FormerRelease(store, redis_server), [0.0]
    watch = CounterWatch(3.0, lambda: now[0])

    def dead() -> bool:
        now[0] += 1.0
        return "former" in watch.read(store.renewals, ["former"])

    for number in range(6):
        former.renew(3_600_000 + number)
        assert not dead()
    former.client.delete(KEYS.alive("former"))
    assert [dead() for _ in range(3)] == [False, False, True]


def test_a_former_release_whose_key_exists_is_not_taken_over(store: RedisStore, redis_server: PrivateRedis) -> None:
    former = FormerRelease(store, redis_server)
    former.renew()
    counter = store.renewals()["former"]
    for seen in (counter, ""):
        found = store.acquire(SHARD, former.token, "q", 1, proof="counter", counter=seen)
        assert found == NotFree("alive", former.token)
    former.client.delete(KEYS.alive("former"))
    assert isinstance(store.acquire(SHARD, former.token, "q", 1, proof="counter", counter=""), Acquired)


def test_a_key_of_the_wrong_type_costs_its_shard_alone(store: RedisStore, redis_server: PrivateRedis) -> None:
    token = begin(store)
    redis_server.client().set(KEYS.shard(OTHER), "overwritten")
    assert store.renew("p", "info", 3_600_000, Beat(2, 1, (SHARD, OTHER))) == Renewed(
        known=True, tokens={SHARD: token, OTHER: ""}
    )


@pytest.mark.parametrize("odd", ["nan", "inf", "1e30", "0x10", "-5", "9" * 16])
def test_an_entry_that_is_no_number_is_replaced(store: RedisStore, redis_server: PrivateRedis, odd: str) -> None:
    begin(store)
    redis_server.client().hset(KEYS.meta, "process:p", odd)
    assert not store.renew("p", "info", 3_600_000, Beat(7, 6)).known
    assert store.renewals()["p"] == "7"
    assert store.renew("p", "info", 3_600_000, Beat(8, 7)).known


def test_an_epoch_that_is_no_number_is_refused(store: RedisStore, redis_server: PrivateRedis) -> None:
    begin(store)
    redis_server.client().hset(KEYS.shard(OTHER), "epoch", "nan")
    with pytest.raises(StoreBroken, match="epoch is nan, expected at most 15 digits"):
        store.acquire(OTHER, "", "p", 1)
