"""Calls to a bad, killed or stuck server: each is done once, or the caller learns that it may have happened."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet.kernel.storage.redis import store as redis_store
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Acquired, Committed, Fenced, Snapshot, StoreUnreachable
from tests.kernel.storage.node import KEEPER, SHARD, begin, connect, fitting, numbers, take
from tests.kernel.storage.proxy import Proxy, proxy
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS, wait_until


@pytest.fixture
def wire(redis_server: PrivateRedis) -> Iterator[Proxy]:
    with proxy(Path(redis_server.folder), redis_server.socket) as made:
        yield made


@pytest.fixture
def store(wire: Proxy) -> Iterator[RedisStore]:
    made = connect(wire.url)
    yield made
    made.close()


def test_a_step_whose_reply_is_lost_is_done_once(wire: Proxy, store: RedisStore) -> None:
    token = begin(store)
    for turn in range(10):
        wire.lose_reply(b"chronolet_step_1")
        done = store.step(fitting(store, token, 100, step_id=str(turn)))
        assert isinstance(done, Committed)
        assert (done.version, done.at) == (turn + 1, store.last())
    assert wire.lost == 10
    assert numbers(store) == list(range(1, 1002))


def test_a_step_without_events_whose_reply_is_lost(wire: Proxy, store: RedisStore) -> None:
    token = begin(store)
    wire.lose_reply(b"chronolet_step_full_1")
    assert isinstance(store.step(fitting(store, token, 0, new_log_cursor=store.last())), Committed)
    assert wire.lost == 1
    assert store.heads([SHARD])[SHARD].version == 1


def test_a_step_that_arrives_after_its_own_repeat(wire: Proxy, store: RedisStore) -> None:
    token = begin(store)
    wire.keep(b"chronolet_step_1")
    assert isinstance(store.step(fitting(store, token, 3)), Committed)
    assert b"CONFLICT" in wire.deliver()
    assert numbers(store) == [1, 2, 3, 4]


def test_a_step_that_arrives_after_a_take_over(wire: Proxy, store: RedisStore, redis_server: PrivateRedis) -> None:
    token = begin(store)
    impatient = connect(wire.url, patience_seconds=0)
    wire.keep(b"chronolet_step_1")
    with pytest.raises(StoreUnreachable, match="may have happened"):
        impatient.step(fitting(store, token, 3))
    assert wire.keeps
    other = connect(redis_server.url)
    taken = other.acquire(SHARD, token, "q", 1, proven_dead=True)
    assert isinstance(taken, Acquired)
    assert b"FENCED" in wire.deliver()
    assert numbers(store) == [1]
    assert store.step(fitting(store, token)) == Fenced("2:q")
    for made in (impatient, other):
        made.close()


def test_every_other_call_may_lose_its_reply(wire: Proxy, store: RedisStore) -> None:
    wire.lose_reply(b"chronolet_begin_1")
    token = begin(store)
    assert numbers(store) == [1]
    for name in ("renew", "try", "snapshot", "archived", "acquire", "send", "trim"):
        wire.lose_reply(f"chronolet_{name}_1".encode())
        match name:
            case "renew":
                store.renew("p", "info", 3_600_000)
            case "try":
                assert store.count_attempts(SHARD, token, {"m": 1}) is None
            case "snapshot":
                assert store.snapshot(SHARD, token, Snapshot(store.last(), 1, b"state"))
            case "archived":
                keeper = take(store, KEEPER)
                assert store.mark_archived(KEEPER, keeper, store.last())
            case "acquire":
                token = take(store, SHARD)
                assert token == "2:p"
            case "send":
                assert store.send(SHARD, "t@1", "e", "r", b"") in ("sent", "duplicate")
                assert len(store.wait(store.last(), {SHARD: store.last()._replace(milliseconds=0)}, 10, 0).mail) == 1
            case "trim":
                assert store.trim(KEEPER, keeper, store.last(), [SHARD]) == 0
    assert wire.lost == 8


def test_a_reader_goes_on_after_a_lost_connection(wire: Proxy, store: RedisStore) -> None:
    token = begin(store)
    before = store.last()
    wire.lose_reply(b"XREAD")
    store.step(fitting(store, token))
    with pytest.raises(StoreUnreachable):
        store.wait(before, {}, 10, 1000)
    assert [entry.position.n for entry in store.wait(before, {}, 10, 1000).log] == [2]


def test_a_server_killed_and_restarted_under_a_step(redis_server: PrivateRedis) -> None:
    store = connect(redis_server.url)
    token = begin(store)
    store.step(fitting(store, token, step_id="a"))
    step = fitting(store, token, step_id="b")
    redis_server.kill9()
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(store.step(step)))
    thread.start()
    redis_server.start()
    thread.join(timeout=HANG_SECONDS)
    assert isinstance(answers[0], Committed)
    assert numbers(store) == [1, 2, 3]
    store.close()


def test_a_stuck_server_is_noticed(redis_server: PrivateRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = connect(redis_server.url)
    step = fitting(patient, begin(patient), 2)
    monkeypatch.setattr(redis_store, "STEP_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(redis_store, "LEASE_TIMEOUT_SECONDS", 0.2)
    store = connect(redis_server.url, patience_seconds=0.3)
    redis_server.pause()
    try:
        with pytest.raises(StoreUnreachable, match="in time"):
            store.renew("p", "info", 3000)
        with pytest.raises(StoreUnreachable, match="may have happened") as caught:
            store.step(step)
        assert caught.value.healing
    finally:
        redis_server.resume()
    # The first of its tries arrives now, or has; it is done once.
    wait_until(lambda: patient.heads([SHARD])[SHARD].version == 1, "the late step")
    assert isinstance(patient.step(step), Committed)
    assert numbers(patient) == [1, 2, 3]
    for made in (patient, store):
        made.close()


def test_closing_ends_a_step_that_is_being_sent_again(redis_server: PrivateRedis) -> None:
    store = connect(redis_server.url, patience_seconds=600)
    token = begin(store)
    step = fitting(store, token)
    redis_server.kill9()
    errors: list[BaseException] = []

    def commit() -> None:
        try:
            store.step(step)
        except StoreUnreachable as error:
            errors.append(error)

    thread = threading.Thread(target=commit)
    thread.start()
    store.close()
    thread.join(timeout=HANG_SECONDS)
    assert len(errors) == 1


def test_tries_load_the_functions_where_they_are_missing(store: RedisStore, redis_server: PrivateRedis) -> None:
    token = begin(store)
    redis_server.client().function_flush()
    assert store.count_attempts(SHARD, token, {"m": 1, "n": 2}) is None
    assert store.heads([SHARD])[SHARD].tries == {"m": 1, "n": 2}
