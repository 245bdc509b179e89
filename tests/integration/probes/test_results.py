"""The capped stream of raw outcomes in a real Redis: complete, in order, readable, and never blocking a probe."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
import redis

from chronolet.adapters.probes.results.per_probe import PerProbe
from chronolet.adapters.probes.results.writer import OUTPUT_LIMIT, RedisResults
from chronolet_schemas.keys import Keys
from chronolet_schemas.prober import RawResult
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS, wait_until

KEY = Keys("n").probe_results


@pytest.fixture
def client(redis_server: PrivateRedis) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as made:
        yield made


def results(server: PrivateRedis, lost: Callable[[int], None] = lambda _: None, **limits: int) -> RedisResults:
    """Return a writer of raw outcomes that waits for a server that is stalled for a while."""
    return RedisResults(server.url, "n", lost, flush_seconds=0.05, timeout_seconds=HANG_SECONDS, **limits)


def outcome(number: int, output: str = "ok", pod: str = "default/web") -> RawResult:
    return RawResult(
        pod=pod,
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


def test_outcomes_are_written_in_order_with_readable_fields(redis_server: PrivateRedis, client: redis.Redis) -> None:
    stream = results(redis_server, of_each=1_000)
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
    stream = results(redis_server, most_entries=200)
    for number in range(2_000):
        stream.add(outcome(number, pod=f"default/{number}"))
    stream.stop()
    assert 200 <= client.xlen(KEY) <= 400
    assert client.xrevrange(KEY, count=1)[0][1]["at"] == "1999"


def test_a_frequent_probe_does_not_displace_entries_of_others(redis_server: PrivateRedis, client: redis.Redis) -> None:
    """This also holds after a restart of the agent, which first has to read what is in the stream."""
    client.xadd(KEY, {"somebody": "else"})
    for process in range(2):
        stream = results(redis_server, of_each=10, most_entries=300)
        stream.add(outcome(process, pod="default/rare"))
        for number in range(500):
            stream.add(outcome(1_000 * process + number))
            if number % 100 == 0:
                wait_until(lambda at=1_000 * process + number: last(client) == at, "this batch")
        stream.stop()
    entries = [fields for _, fields in client.xrange(KEY)]
    assert [one["at"] for one in entries if one.get("pod") == "default/rare"] == ["0", "1"]
    # Excess entries are deleted with the next batch, and there is none after the last one.
    frequent = [int(one["at"]) for one in entries if one.get("pod") == "default/web"]
    assert frequent[-10:] == list(range(1_490, 1_500))
    assert len(frequent) <= 10 + 100
    assert entries[0] == {"somebody": "else"}


def last(client: redis.Redis) -> int:
    """Return the time in the newest entry; -1 if there is none."""
    entries = client.xrevrange(KEY, count=1)
    return int(entries[0][1].get("at", -1)) if entries else -1


def test_the_least_recently_active_probe_is_forgotten() -> None:
    kept = PerProbe(1, most_probes=2)
    for number, probe in enumerate(b"abcab"):
        kept.added((bytes((probe,)),), b"%d" % number)
    assert kept.too_many() == []
    kept.added((b"b",), b"5")
    assert kept.too_many() == [b"4"]
    kept.deleted()
    assert kept.too_many() == []


def writers() -> list[threading.Thread]:
    """Return the running threads of writers."""
    return [one for one in threading.enumerate() if one.name == "probe results"]


def acknowledged(stream: RedisResults, client: redis.Redis) -> bool:
    """Whether the first outcome has been written and acknowledged: an outcome whose reply is lost counts as dropped."""
    return client.xlen(KEY) == 1 and not stream._channel._lock.locked()


def test_an_unreachable_server_does_not_block_the_probes(redis_server: PrivateRedis, client: redis.Redis) -> None:
    lost: list[int] = []
    stream = results(redis_server, lost.append)
    stream.add(outcome(0))
    wait_until(lambda: acknowledged(stream, client), "the first")
    redis_server.kill9()
    for number in range(30_000):
        stream.add(outcome(number))
    redis_server.start()
    stream.add(outcome(-1))
    wait_until(lambda: client.exists(KEY) and client.xrevrange(KEY, count=1)[0][1]["at"] == "-1", "the last")
    stream.stop()
    assert sum(lost) + client.xinfo_stream(KEY)["entries-added"] == 30_002, "dropped outcomes are counted"
    assert not writers()


def test_outcomes_of_the_last_moment_are_written_at_the_end(redis_server: PrivateRedis, client: redis.Redis) -> None:
    stream = results(redis_server)
    stream.add(outcome(0))
    wait_until(lambda: acknowledged(stream, client), "the first")
    redis_server.pause()
    stream.add(outcome(1))
    wait_until(lambda: not stream._waiting, "a write that waits for the server")
    stream.add(outcome(2))
    ending = threading.Thread(target=stream.stop)
    ending.start()
    wait_until(stream._stopped.is_set, "the end")
    redis_server.resume()
    ending.join()
    assert client.xlen(KEY) == 3


def test_an_unused_writer_starts_no_thread_and_writes_nothing(redis_server: PrivateRedis, client: redis.Redis) -> None:
    stream = results(redis_server)
    assert not writers()
    stream.stop()
    assert not writers()
    assert client.keys("*") == []


def test_a_writer_that_has_ended_is_not_started_again(redis_server: PrivateRedis, client: redis.Redis) -> None:
    stream = results(redis_server)
    stream.stop()
    stream.add(outcome(0))
    assert not writers()
    assert client.keys("*") == []
