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


@pytest.mark.parametrize("name", library.LIBRARIES)
def test_a_library_of_the_same_name_with_other_code_is_refused_and_kept(redis_server: PrivateRedis, name: str) -> None:
    other = library.code(name).replace("-- Next:", "-- Then:")
    assert other != library.code(name)
    redis_server.client().function_load(other)
    with pytest.raises(StoreUnreachable, match=f"{name} with other code") as caught:
        unchecked(redis_server.url).check()
    assert not caught.value.healing
    assert redis_server.client().function_list(library=name, withcode=True)[0][7] == other.encode()


PUBLISHED = {
    "chronolet_1": "3332be90b3f5f42e1b9cbb5b01afecf50f377041987300619ae74bf92d9f7f44",
}
"""SHA-256 of the libraries that former releases have loaded."""


def test_the_libraries_are_the_published_texts() -> None:
    """Former releases compare them to the byte: one reworded comment, and they refuse the server."""
    for name, digest in PUBLISHED.items():
        assert hashlib.sha256(library.code(name).encode()).hexdigest() == digest


def test_a_former_release_leaves_later_libraries_alone(
    redis_server: PrivateRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older and a newer agent on one server load what they have, and keep what the other has loaded."""
    all_libraries = dict(library.LIBRARIES)
    former = {"chronolet_1": all_libraries["chronolet_1"]}
    for has in (former, all_libraries, former):
        monkeypatch.setattr(library, "LIBRARIES", has)
        unchecked(redis_server.url).check()
        loaded = {found[1].decode() for found in redis_server.client().function_list()}
        assert loaded == set(former if has is former and len(loaded) == 1 else all_libraries)
    assert loaded == set(all_libraries)


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
    assert len(redis_server.client().function_list()) == len(library.LIBRARIES)


def test_the_functions_survive_a_restart_of_the_server(store: RedisStore, redis_server: PrivateRedis) -> None:
    token = begin(store)
    redis_server.kill9()
    redis_server.start()
    assert len(redis_server.client().function_list()) == len(library.LIBRARIES)
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
