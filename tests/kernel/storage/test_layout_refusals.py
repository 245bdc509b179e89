"""Changes of the layout on a real server with damaged keys: refused with the key's name, and nothing is written."""

from collections.abc import Iterator

import pytest

from chronolet.kernel.storage.layout import Reshard, Resharded
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import StoreBroken
from chronolet_schemas.envelope import START
from chronolet_schemas.keys import Shard, shards_of
from tests.kernel.storage.node import KEYS, STARTED, begin, connect, record, take
from tests.support.redis.server import PrivateRedis


@pytest.fixture
def store(redis_server: PrivateRedis) -> Iterator[RedisStore]:
    made = connect(redis_server.url)
    yield made
    made.close()


def change(store: RedisStore) -> Reshard:
    """Prepare a change of `pod` from two shards to three."""
    former, new = shards_of("pod", 2), shards_of("pod", 3)
    return Reshard(
        kind="pod",
        before=2,
        after=3,
        tokens={shard: take(store, shard) for shard in former},
        mail_ends=dict.fromkeys(former, START),
        moves=[],
        read_to=store.last(),
        format=1,
        states=dict.fromkeys(new, b"\x80"),
        log_cursor=START,
        decided=(),
        attempts={},
        unclean=False,
        schema=2,
        records=(record(),),
    )


@pytest.mark.parametrize(
    "key", [KEYS.shard, KEYS.mailbox, KEYS.requests, KEYS.snapshot], ids=["hash", "mailbox", "requests", "snapshot"]
)
@pytest.mark.parametrize("shard", [Shard("pod", 1), Shard("pod", 2)], ids=["former", "new"])
def test_a_key_of_the_wrong_type_refuses_the_change(
    store: RedisStore, redis_server: PrivateRedis, key: object, shard: Shard
) -> None:
    begin(store)
    prepared = change(store)
    name = key(shard)  # type: ignore[operator]
    client = redis_server.client()
    client.delete(name)
    client.rpush(name, "of the wrong type")
    last, other = store.last(), store.heads([Shard("pod", 0)])
    with pytest.raises(StoreBroken, match=f"{name} is a list".replace("{", r"\{").replace("}", r"\}")):
        store.reshard(prepared)
    assert store.last() == last
    assert store.heads([Shard("pod", 0)]) == other
    assert store.layout().counts["pod"] == 2
    client.delete(name)


@pytest.mark.parametrize("field", ["epoch", "version", "mail_cursor"])
def test_a_hash_with_an_unusable_field_refuses_the_change(
    store: RedisStore, redis_server: PrivateRedis, field: str
) -> None:
    begin(store)
    prepared = change(store)
    redis_server.client().hset(KEYS.shard(Shard("pod", 1)), field, "garbage")
    last = store.last()
    with pytest.raises(StoreBroken, match="unusable"):
        store.reshard(prepared)
    assert store.last() == last


@pytest.mark.parametrize("field", ["shards:pod", "reshard:pod"])
@pytest.mark.parametrize("value", ["", "0", "-1", "many", "\u0663"])
def test_a_layout_with_a_count_that_is_no_number_is_refused(
    store: RedisStore, redis_server: PrivateRedis, field: str, value: str
) -> None:
    begin(store)
    redis_server.client().hset(KEYS.meta, field, value)
    with pytest.raises(StoreBroken, match=f"{field} is .* expected a number of shards"):
        store.layout()


def test_a_hash_whose_tables_are_damaged_names_itself(store: RedisStore, redis_server: PrivateRedis) -> None:
    begin(store)
    redis_server.client().hset(KEYS.shard(Shard("pod", 1)), "decided", "1-1,garbage")
    with pytest.raises(StoreBroken, match="shard:pod/1: decided is '1-1,garbage'"):
        store.heads([Shard("pod", 1)])


def test_a_kind_cannot_join_a_log_that_is_gone(store: RedisStore) -> None:
    with pytest.raises(StoreBroken, match="is gone"):
        store.add_kind("eviction", 1, STARTED)
    with pytest.raises(StoreBroken, match="malformed count"):
        store.request_shards("pod", 0)


def test_functions_are_loaded_again_after_their_loss(store: RedisStore, redis_server: PrivateRedis) -> None:
    begin(store)
    prepared = change(store)
    client = redis_server.client()
    client.function_flush()
    assert store.request_shards("pod", 3)
    client.function_flush()
    assert isinstance(store.reshard(prepared), Resharded)
    client.function_flush()
    assert store.send(Shard("pod", 0), "pod.Do@1", "pod/a", "r", b"", of=3) == "sent"
