"""The capped stream of raw outcomes on a real Redis: whole, in order, readable, and never in the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import redis

from chronolet.adapters.probes import results
from chronolet.adapters.probes.results import OUTPUT_LIMIT, RedisResults
from chronolet_schemas.keys import Keys
from chronolet_schemas.prober import RawResult
from tests.support.redis import PrivateRedis
from tests.support.scratch import wait_until

KEY = Keys("n").probe_results


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "_FLUSH_SECONDS", 0.05)


@pytest.fixture
def client(redis_server: PrivateRedis) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as made:
        yield made


def outcome(number: int, output: str = "ok") -> RawResult:
    return RawResult(
        pod="default/web",
        uid="u",
        container="app",
        probe="Liveness",
        id="c",
        outcome="success",
        code="200",
        at=str(number),
        milliseconds="1",
        late_milliseconds="0.5",
        output=output,
    )


def test_all_come_in_order_with_readable_fields(redis_server: PrivateRedis, client: redis.Redis) -> None:
    stream = RedisResults(redis_server.url, "n")
    for number in range(500):
        stream.add(outcome(number, "x" * (2 * OUTPUT_LIMIT) if number == 0 else "\u00e9\n"))
    wait_until(lambda: client.xlen(KEY) == 500, "all outcomes")
    stream.add(outcome(500))
    stream.stop()
    entries = [fields for _, fields in client.xrange(KEY)]
    assert [int(fields["at"]) for fields in entries] == list(range(501))
    assert list(entries[0]) == list(RawResult.__struct_fields__)
    assert len(entries[0]["output"]) == OUTPUT_LIMIT
    assert entries[1]["output"] == "\u00e9\n"


def test_the_stream_is_capped(redis_server: PrivateRedis, client: redis.Redis) -> None:
    stream = RedisResults(redis_server.url, "n", most_entries=200)
    for number in range(2_000):
        stream.add(outcome(number))
    stream.stop()
    assert 200 <= client.xlen(KEY) <= 400
    assert client.xrevrange(KEY, count=1)[0][1]["at"] == "1999"


def test_a_server_that_is_away_is_in_nobodys_way(redis_server: PrivateRedis, client: redis.Redis) -> None:
    stream = RedisResults(redis_server.url, "n")
    stream.add(outcome(0))
    wait_until(lambda: client.xlen(KEY) == 1, "the first")
    redis_server.kill9()
    for number in range(30_000):
        stream.add(outcome(number))
    redis_server.start()
    stream.add(outcome(-1))
    wait_until(lambda: client.exists(KEY) and client.xrevrange(KEY, count=1)[0][1]["at"] == "-1", "the last")
    stream.stop()
    assert not [one for one in threading.enumerate() if one.name == "probe results"]


def test_one_that_had_nothing_to_do_ends(redis_server: PrivateRedis) -> None:
    RedisResults(redis_server.url, "n").stop()
