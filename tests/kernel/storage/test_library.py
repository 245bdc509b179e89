"""The function library on the server: loaded once, loaded again if it is lost, and never replaced."""

import hashlib
import threading
from collections.abc import Iterator

import pytest

from chronolet.kernel.storage.redis import library
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Committed, Fenced, StoreUnreachable
from chronolet_schemas.envelope import START
from tests.kernel.storage.node import begin, connect, fitting, unchecked
from tests.support.redis.server import PrivateRedis


@pytest.fixture
def store(redis_server: PrivateRedis) -> Iterator[RedisStore]:
    made = connect(redis_server.url)
    yield made
    made.close()


def test_a_library_of_the_same_name_with_other_code_is_refused_and_kept(redis_server: PrivateRedis) -> None:
    other = library.code().replace("local MAILBOX_FULL = 10000", "local MAILBOX_FULL = 1")
    assert other != library.code()
    redis_server.client().function_load(other)
    with pytest.raises(StoreUnreachable, match="other code") as caught:
        unchecked(redis_server.url).check()
    assert not caught.value.healing
    assert redis_server.client().function_list(library=library.NAME, withcode=True)[0][7] == other.encode()


def test_the_library_is_the_published_text() -> None:
    """Earlier releases compare the library byte by byte: if even one comment is reworded, they refuse the server."""
    digest = hashlib.sha256(library.code().encode()).hexdigest()
    assert digest == "3332be90b3f5f42e1b9cbb5b01afecf50f377041987300619ae74bf92d9f7f44"


def test_processes_that_load_the_library_concurrently_all_succeed(redis_server: PrivateRedis) -> None:
    errors: list[Exception] = []

    def check() -> None:
        try:
            connect(redis_server.url).close()
        except StoreUnreachable as error:
            errors.append(error)

    threads = [threading.Thread(target=check) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(redis_server.client().function_list()) == 1


def test_the_functions_survive_a_restart_of_the_server(store: RedisStore, redis_server: PrivateRedis) -> None:
    token = begin(store)
    redis_server.kill9()
    redis_server.start()
    assert len(redis_server.client().function_list()) == 1
    assert isinstance(store.step(fitting(store, token)), Committed)


def test_lost_functions_are_loaded_again(store: RedisStore, redis_server: PrivateRedis) -> None:
    token = begin(store)
    redis_server.client().function_flush()
    assert isinstance(store.step(fitting(store, token)), Committed)
    redis_server.client().function_flush()
    store.renew("p", "", 1000)


def test_a_step_is_fenced_on_an_emptied_server(store: RedisStore, redis_server: PrivateRedis) -> None:
    token = begin(store)
    step = fitting(store, token)
    redis_server.client().flushall()
    redis_server.client().function_flush()
    assert store.step(step) == Fenced("")
    assert store.last() == START
    assert redis_server.client().dbsize() == 0
