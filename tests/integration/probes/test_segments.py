"""Segments in a real Redis: every outcome is in one of them, or its loss is; a kill loses the open one only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from chronolet.adapters.probes.results.reader import kept_results
from chronolet.adapters.probes.results.segment_stream import RedisSegments
from chronolet.adapters.probes.results.segment_writer import MOST_ENTRIES, SEGMENT_BYTES, SegmentWriter
from chronolet.adapters.probes.results.writer import RedisResults
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.kernel.storage.store import StoreBroken
from chronolet.rules.probes.segments.encoding import decode
from chronolet.rules.probes.segments.gaps import Gap, gaps, head_of
from chronolet.rules.probes.segments.merging import merged
from chronolet.rules.probes.segments.segment import Lost, Segment
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Keys
from tests.rules.probes.segments.outcomes import T0, listed, outcome
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS, wait_until

KEY = Keys("n").probe_segments
AT_ONCE = 0.0
NEVER = 1e9


@pytest.fixture
def client(redis_server: PrivateRedis) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_server.url) as made:
        yield made


@pytest.fixture
def stream(redis_server: PrivateRedis) -> Iterator[RedisSegments]:
    made = RedisSegments(redis_server.url, "n", timeout_seconds=HANG_SECONDS)
    yield made
    made.close()


def results(server: PrivateRedis, segment_seconds: float = NEVER, process: str = "p") -> RedisResults:
    return RedisResults(
        server.url,
        "n",
        process=lambda: process,
        flush_seconds=0.01,
        segment_seconds=segment_seconds,
        timeout_seconds=HANG_SECONDS,
    )


def read(stream: RedisSegments) -> list[Segment]:
    return [decode(entry.data) for entry in stream.entries()]


def times(segments: list[Segment]) -> list[int]:
    return [one[8] for one in listed(segments)]


def found_gaps(segments: list[Segment]) -> list[Gap]:
    return gaps(map(head_of, segments), lambda *_: False)


def test_segments_are_written_after_their_time_and_at_the_end(
    redis_server: PrivateRedis, stream: RedisSegments
) -> None:
    made = results(redis_server, AT_ONCE)
    for number in range(3):
        made.add(outcome(T0 + number))
        wait_until(lambda count=number + 1: sum(one.outcomes for one in read(stream)) == count, "a segment")
    made.stop()
    segments = read(stream)
    assert times(segments) == [T0, T0 + 1, T0 + 2]
    assert [one.ended for one in segments] == [False, False, False, True], "the last one has no outcome"
    assert found_gaps(segments) == []
    assert [entry.outcomes for entry in stream.entries()] == [1, 1, 1, 0]


def test_outcomes_of_an_open_segment_are_written_at_the_end(redis_server: PrivateRedis, stream: RedisSegments) -> None:
    made = results(redis_server)
    for number in range(100):
        made.add(outcome(T0 + number))
    made.stop()
    (segment,) = read(stream)
    assert (segment.process, segment.ended, times([segment])) == ("p", True, list(range(T0, T0 + 100)))


def test_a_process_without_outcomes_writes_no_segment(redis_server: PrivateRedis, client: redis.Redis) -> None:
    results(redis_server).stop()
    assert not client.exists(KEY)


def test_a_large_segment_is_written_early(redis_server: PrivateRedis, stream: RedisSegments) -> None:
    writer, channel = SegmentWriter("n", lambda: "p"), Channel(Address(redis_server.url), HANG_SECONDS)
    assert writer.due_in is None
    for number in range(SEGMENT_BYTES):
        writer.take(outcome(T0 + number))
    assert writer.due_in == 0.0
    writer.write(channel)
    early = read(stream)
    assert len(early) >= 1
    writer.end(channel)
    assert times(read(stream)) == list(range(T0, T0 + SEGMENT_BYTES))
    channel.disconnect()


def test_a_stream_that_nobody_archives_stays_small(redis_server: PrivateRedis, client: redis.Redis) -> None:
    """Even if all of its segments are full of failures that differ, as long as their outputs are usual texts."""
    writer, channel = SegmentWriter("n", lambda: "p", seconds=NEVER), Channel(Address(redis_server.url), HANG_SECONDS)
    for number in range(640):
        ids = (zlib.crc32(b"%d/%d" % (number, line)) for line in range(18))
        output = "".join(f"{T0 + number} ERROR request {one:08x} to 10.0.3.17:5432: refused\n" for one in ids)
        writer.take(outcome(T0 + number, outcome="failure", code="500", output=output))
    writer.write(channel)
    channel.disconnect()
    count = client.xlen(KEY)
    assert count >= 9
    assert MOST_ENTRIES * client.memory_usage(KEY, samples=0) / count < 64_000_000


def test_several_processes_write_at_the_same_time(redis_server: PrivateRedis, stream: RedisSegments) -> None:
    made = [results(redis_server, AT_ONCE, f"p{number}") for number in range(3)]

    def write(number: int) -> None:
        for at in range(200):
            made[number].add(outcome(T0 + at, pod=f"default/{number}"))
        made[number].stop()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    whole = merged(read(stream))
    assert sorted((one.process, one.outcomes, one.ended) for one in whole) == [
        (f"p{number}", 200, True) for number in range(3)
    ]
    assert found_gaps(whole) == []


# -- Redis is away, or refuses
def test_outcomes_are_kept_while_redis_is_away(redis_server: PrivateRedis, stream: RedisSegments) -> None:
    made = results(redis_server, AT_ONCE)
    made.add(outcome(T0))
    wait_until(lambda: len(read(stream)) == 1, "the first segment")
    redis_server.kill9()
    for number in range(1, 50):
        made.add(outcome(T0 + number))
    wait_until(lambda: not made._waiting and made._segments._recorder.is_open, "outcomes in memory")
    redis_server.start()
    made.add(outcome(T0 + 50))
    made.stop()
    segments = read(stream)
    assert segments[-1].ended
    assert sorted(set(times(segments))) == list(range(T0, T0 + 51))
    assert found_gaps(segments) == []


def test_dropped_segments_are_counted_by_those_that_follow(redis_server: PrivateRedis, stream: RedisSegments) -> None:
    writer = SegmentWriter("n", lambda: "p", seconds=AT_ONCE, most_pending=2)
    channel = Channel(Address(redis_server.url), HANG_SECONDS)
    writer.take(outcome(T0))
    writer.write(channel)
    redis_server.kill9()
    for number in range(1, 6):
        writer.take(outcome(T0 + number))
        if number == 1:
            writer.drop(Lost(7, 8, 9))
        writer.write(channel)
    redis_server.start()
    writer.end(channel)
    segments = read(stream)
    assert times(segments) == [T0, T0 + 5]
    by_reason = {gap.why: gap.outcomes for gap in found_gaps(segments)}
    assert by_reason == {"missing": 4, "dropped": 9}
    channel.disconnect()


def test_outcomes_that_come_too_fast_are_dropped_and_counted(redis_server: PrivateRedis, stream: RedisSegments) -> None:
    made = results(redis_server)
    made.add(outcome(T0))
    wait_until(lambda: not made._waiting, "the first")
    redis_server.pause()
    for number in range(1, 30_000):
        made.add(outcome(T0 + number))
    redis_server.resume()
    made.stop()
    segments = read(stream)
    (gap,) = found_gaps(segments)
    assert (gap.why, gap.outcomes) == ("dropped", 30_000 - len(times(segments)))
    assert gap.first > T0
    assert gap.last is not None
    assert gap.last < T0 + 30_000


def test_a_key_of_another_type_is_an_error_and_heals(
    redis_server: PrivateRedis, client: redis.Redis, stream: RedisSegments
) -> None:
    client.set(KEY, "text")
    made = results(redis_server, AT_ONCE)
    made.add(outcome(T0))
    wait_until(lambda: made._segments._failing, "a refused segment")
    with pytest.raises(StoreBroken, match="probe_segments: WRONGTYPE"):
        read(stream)
    client.delete(KEY)
    made.stop()
    assert times(read(stream)) == [T0]


def test_a_refusal_of_single_outcomes_does_not_stop_segments(
    redis_server: PrivateRedis, client: redis.Redis, stream: RedisSegments
) -> None:
    """Not even if there are new outcomes at each flush, as on a busy node."""
    client.set(Keys("n").probe_results, "text")
    made = results(redis_server, AT_ONCE)
    flush = made._flush

    def flush_something() -> bool:
        made._waiting.append(outcome(T0))
        return flush()

    made._flush = flush_something  # type: ignore[method-assign]
    made.add(outcome(T0))
    wait_until(lambda: bool(read(stream)), "a segment")
    made.stop()
    assert read(stream)[-1].ended


# -- kills
PROGRAM = """
import sys
from chronolet.adapters.probes.results.writer import RedisResults
from tests.rules.probes.segments.outcomes import outcome

made = RedisResults(sys.argv[1], "n", process=lambda: "p", flush_seconds=0.01, segment_seconds=0.05)
for line in sys.stdin:
    made.add(outcome(int(line)))
"""


def test_a_killed_process_loses_its_open_segment_only(redis_server: PrivateRedis, stream: RedisSegments) -> None:
    """It is killed at any moment while it writes. What it has acknowledged as a segment stays, without any invented
    outcome, and the gap is known."""
    for _ in range(5):
        before, total = len(read(stream)), 0
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, redis_server.url], stdin=subprocess.PIPE, text=True)
        assert process.stdin is not None
        with process, process.stdin as lines:
            while len(read(stream)) < before + 3:
                print(T0 + total, file=lines, flush=True)
                total += 1
            os.kill(process.pid, signal.SIGKILL)
        segments = read(stream)[before:]
        found = times(merged(segments))
        assert found == list(range(T0, T0 + len(found)))
        assert 3 <= len(found) <= total
        assert [gap.why for gap in found_gaps(segments)] == ["unwritten"]


def test_the_stream_of_single_outcomes_has_what_a_kill_took(redis_server: PrivateRedis, stream: RedisSegments) -> None:
    made = results(redis_server)
    for number in range(20):
        made.add(outcome(T0 + number))
    wait_until(lambda: len(list(kept_results(redis_server.url, "n"))) == 20, "all outcomes, in an open segment")
    assert read(stream) == []
    made.stop()


# -- reading and trimming
def test_entries_are_read_in_parts_and_trimmed(
    redis_server: PrivateRedis, client: redis.Redis, stream: RedisSegments
) -> None:
    for number in range(1, 200):
        fields: Any = {"process": "p", "outcomes": number, "data": b"x"} if number % 10 else {"somebody": "else"}
        client.xadd(KEY, fields, id=f"{number // 2}-{1 + number % 2}")
    ids = [entry.id for entry in stream.entries()]
    assert len(ids) == 199
    assert ids == sorted(ids)
    assert [entry.id for entry in stream.entries(Position(5, 1), Position(7, 1))] == [
        Position(5, 2),
        Position(6, 1),
        Position(6, 2),
        Position(7, 1),
    ]
    assert [entry.data for entry in stream.entries() if not entry.outcomes] == [b""] * 19
    assert stream.trim(Position(50, 1)) == 100
    assert next(stream.entries()).id == Position(50, 2)
    assert stream.trim(Position(50, 1)) == 0
