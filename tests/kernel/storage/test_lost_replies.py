"""Calls over a bad connection, or to a killed or stuck server: each is executed once, or the caller learns that it may
have been executed.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Acquired, Committed, Fenced, Snapshot, StoreUnreachable
from tests.kernel.storage.node import KEEPER, SHARD, begin, connect, fitting, numbers, take
from tests.kernel.storage.proxy import Proxy, proxy
from tests.support.patience import PATIENT
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS, wait_until


@pytest.fixture
def line(redis_server: PrivateRedis) -> Iterator[Proxy]:
    with proxy(Path(redis_server.folder), redis_server.socket) as made:
        yield made


@pytest.fixture
def store(line: Proxy) -> Iterator[RedisStore]:
    made = connect(line.url)
    yield made
    made.close()


def test_a_step_whose_reply_is_lost_is_committed_once(line: Proxy, store: RedisStore) -> None:
    token = begin(store)
    for turn in range(10):
        line.lose_reply(b"chronolet_step_2")
        done = store.step(fitting(store, token, 100, step_id=str(turn)))
        assert isinstance(done, Committed)
        assert (done.version, done.at) == (turn + 1, store.last())
    assert line.lost == 10
    assert numbers(store) == list(range(1, 1002))


def test_a_step_without_events_whose_reply_is_lost_is_committed_once(line: Proxy, store: RedisStore) -> None:
    token = begin(store)
    line.lose_reply(b"chronolet_step_full_2")
    assert isinstance(store.step(fitting(store, token, 0, new_log_cursor=store.last())), Committed)
    assert line.lost == 1
    assert store.heads([SHARD])[SHARD].version == 1


def test_a_step_that_arrives_after_its_own_repeat_is_refused(line: Proxy, store: RedisStore) -> None:
    token = begin(store)
    line.keep(b"chronolet_step_2")
    assert isinstance(store.step(fitting(store, token, 3)), Committed)
    assert b"CONFLICT" in line.deliver()
    assert numbers(store) == [1, 2, 3, 4]


def test_a_step_that_arrives_after_a_takeover_is_fenced(
    line: Proxy, store: RedisStore, redis_server: PrivateRedis
) -> None:
    token = begin(store)
    impatient = connect(line.url, timeouts=replace(PATIENT, resending_seconds=0.0))
    line.keep(b"chronolet_step_2")
    with pytest.raises(StoreUnreachable, match="may have happened"):
        impatient.step(fitting(store, token, 3))
    assert line.keeps
    other = connect(redis_server.url)
    taken = other.acquire(SHARD, token, "q", 1, proof="lock")
    assert isinstance(taken, Acquired)
    assert b"FENCED" in line.deliver()
    assert numbers(store) == [1]
    assert store.step(fitting(store, token)) == Fenced("2:q")
    for made in (impatient, other):
        made.close()


def test_every_other_call_succeeds_although_its_reply_is_lost(line: Proxy, store: RedisStore) -> None:
    line.lose_reply(b"chronolet_begin_1")
    token = begin(store)
    assert numbers(store) == [1]
    for name in ("renew", "try", "snapshot", "archived", "acquire", "send", "trim"):
        version = 2 if name in ("renew", "acquire") else 1
        line.lose_reply(f"chronolet_{name}_{version}".encode())
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
    assert line.lost == 8


def test_a_reader_continues_after_a_lost_connection(line: Proxy, store: RedisStore) -> None:
    token = begin(store)
    before = store.last()
    line.lose_reply(b"XREAD")
    store.step(fitting(store, token))
    with pytest.raises(StoreUnreachable):
        store.wait(before, {}, 10, 1000)
    assert [entry.position.n for entry in store.wait(before, {}, 10, 1000).log] == [2]


def test_a_step_is_committed_once_when_its_server_is_killed_and_restarted(redis_server: PrivateRedis) -> None:
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


def test_calls_to_a_stuck_server_fail_and_a_late_step_is_committed_once(redis_server: PrivateRedis) -> None:
    patient = connect(redis_server.url)
    step = fitting(patient, begin(patient), 2)
    timeouts = replace(PATIENT, step_seconds=0.2, lease_seconds=0.2, resending_seconds=0.3)
    store = connect(redis_server.url, timeouts=timeouts)
    redis_server.pause()
    try:
        with pytest.raises(StoreUnreachable, match="in time"):
            store.renew("p", "info", 3000)
        with pytest.raises(StoreUnreachable, match="may have happened") as caught:
            store.step(step)
        assert caught.value.healing
    finally:
        redis_server.resume()
    # The first attempt at the step arrives now or has arrived; the step is committed once.
    wait_until(lambda: patient.heads([SHARD])[SHARD].version == 1, "the late step")
    assert isinstance(patient.step(step), Committed)
    assert numbers(patient) == [1, 2, 3]
    for made in (patient, store):
        made.close()


def test_closing_the_store_ends_a_step_that_is_being_resent(redis_server: PrivateRedis) -> None:
    store = connect(redis_server.url, timeouts=replace(PATIENT, resending_seconds=600.0))
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


def test_counting_attempts_loads_missing_functions(store: RedisStore, redis_server: PrivateRedis) -> None:
    token = begin(store)
    redis_server.client().function_flush()
    assert store.count_attempts(SHARD, token, {"m": 1, "n": 2}) is None
    assert store.heads([SHARD])[SHARD].attempts == {"m": 1, "n": 2}
