"""Replay, restart and size, with a log of a million typical events.

Input: a redis-server. Output: the speed of recovery next to redis-py's XRANGE, which reads the same entries without
decoding them; the time from the start of a process to its first effect, with snapshots; and the size of an entry in
Redis.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import redis

from chronolet.kernel.log.recovery import Recovery
from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Head
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import START, Entry, Position
from chronolet_schemas.keys import Keys, Shard
from tests.bench.figures import Figure, interleaved
from tests.bench.kernel import gauge
from tests.bench.kernel.child import Child, Writer, begin
from tests.support import scratch

NODE = "replay"
LOG = Keys(NODE).log
BATCH = 500
PAGE = 1000
FOLDED = 50_000
"""Number of events in one replay: small enough that other load affects recovery and the reference equally."""
TAIL = 9_900
"""Number of events after the snapshot: slightly fewer than the number after which the host takes the next one."""
RESTARTS = 3
Clock = Callable[[], float]
"""A clock in seconds: wall-clock time, or this thread's CPU time."""
GAUGE, JOB = Shard("gauge"), Shard("job")


def figures(url: str, client: redis.Redis, locks: Path, events: int, rounds: int) -> list[Figure]:
    """Measure the size of entries, recovery and the restart of a process on one log; return the figures."""
    store = RedisStore(url, NODE)
    begin(store, NODE)
    writer = Writer(store, GAUGE)
    first = _fill(writer, 0, FOLDED)
    found = [_size(client), *_replayed(store, client, first, rounds)]
    store.send(JOB, registry.type_of(gauge.Run), "job/1", "r1", codec.encode(gauge.Run(request="r1", number=1)))
    _fill(writer, FOLDED, events)
    found += _comeback(store, url, locks, events)
    store.close()
    return found


def _fill(writer: Writer, start: int, stop: int) -> Position:
    """Write typical events through the real step; return the last position."""
    at = START
    for begun in range(start, stop, BATCH):
        numbers = range(begun, begun + BATCH)
        at = writer.commit([gauge.record(gauge.measured(number), number, writer.actor) for number in numbers]).at
    return at


# -- size ------------------------------------------------------------------------------------------------------------


def _size(client: redis.Redis) -> Figure:
    entries = client.xlen(LOG)
    bytes_each = (client.memory_usage(LOG, samples=0) or 0) / entries
    sample: Any = _page(client, "-", "+")[1:]
    values = statistics.mean(sum(map(len, fields.values())) for _, fields in sample)
    data = statistics.mean(len(fields[b"data"]) for _, fields in sample)
    return Figure(
        name="a typical event in Redis",
        ours=bytes_each,
        unit="bytes",
        reference=values,
        reference_name="bytes in its field values",
        goal=1.3,
        note=f"MEMORY USAGE of the log over its {entries:,} entries; the values are the entry's six fields,"
        f" {data:.0f} bytes of them the msgpack of twelve",
    )


# -- replay ----------------------------------------------------------------------------------------------------------


def _replayed(store: RedisStore, client: redis.Redis, upto: Position, rounds: int) -> list[Figure]:
    wall, cpu = time.perf_counter, time.thread_time
    medians = interleaved(
        {
            "recovery": lambda: _recover(store, upto, wall),
            "pages": lambda: _pages(client, upto, wall),
            "recovery cpu": lambda: _recover(store, upto, cpu),
            "pages cpu": lambda: _pages(client, upto, cpu),
        },
        rounds,
    )
    return [
        Figure(
            name="replay: scan, typed decode, fold",
            ours=medians["recovery"],
            unit="events/s",
            reference=medians["pages"],
            reference_name=f"entries/s by XRANGE, pages of {PAGE:,}",
            goal=0.8,
            bound="at least",
            note=f"the kernel's own recovery of {gauge.ENTITIES} entities; redis-py reads the same entries and decodes"
            " nothing. It needs two free cores: the server makes the next page while this one is folded",
        ),
        Figure(
            name="replay, CPU time of the reader",
            ours=1e6 / medians["recovery cpu"],
            unit="us an event",
            reference=1e6 / medians["pages cpu"],
            reference_name="us an entry",
        ),
    ]


def _recover(store: RedisStore, upto: Position, clock: Clock) -> float:
    kinds = {"gauge": gauge.kinds()["gauge"]}

    def history(after: Position) -> Iterator[Entry]:
        return store.scan(after, upto)

    started = clock()
    recovery = Recovery(kinds, Router(kinds, gauge.SHARDS), store, history)
    head = Head(token="", version=1, step_id="", at=upto, log_cursor=upto, mail_cursor=START, attempts={}, schema=0)
    recovered = recovery.run({GAUGE: ("1:bench", head)}, frozenset())[GAUGE]
    spent = clock() - started
    assert len(recovered.ledger.states) == gauge.ENTITIES
    assert recovered.read_to == upto
    return upto.n / spent


def _pages(client: redis.Redis, upto: Position, clock: Clock) -> float:
    count, after, started = 0, "-", clock()
    while page := _page(client, after, str(upto)):
        count += len(page)
        after = "(" + page[-1][0].decode()
    spent = clock() - started
    assert count == upto.n
    return count / spent


def _page(client: redis.Redis, after: str, upto: str) -> Any:
    return client.xrange(LOG, after, upto, count=PAGE)


# -- restart ---------------------------------------------------------------------------------------------------------


def _comeback(store: RedisStore, url: str, locks: Path, events: int) -> list[Figure]:
    """Measure the time from a process's start to its first effect: a job in the mailbox that no process has run yet."""
    whole = _start(url, locks)
    whole[1].kill()
    last = store.last()
    for shard in (GAUGE, JOB):
        snapshot = store.read_snapshots([shard]).get(shard)
        assert snapshot is not None, f"{shard}: the first run took its snapshot"
        assert last.n - snapshot.position.n < 100, f"{shard}: the snapshot is of the log's end"
    writer = Writer(store, GAUGE)
    _fill(writer, events, events + TAIL)
    found = []
    for number in range(2, RESTARTS + 2):
        command = gauge.Run(request=f"r{number}", number=number)
        store.send(JOB, registry.type_of(gauge.Run), f"job/{number}", command.request, codec.encode(command))
        seconds, child = _start(url, locks)
        found.append(seconds)
        child.kill()
    return [
        Figure(
            name=f"a process acts again, {events:,} events, snapshots",
            ours=statistics.median(found),
            unit="s",
            goal=2.0,
            note="from starting Python to the effect of a command that waits; killed before by kill -9;"
            f" {TAIL:,} events lie behind the snapshot",
        ),
        Figure(name=f"the same without a snapshot, {events:,} events folded", ours=whole[0], unit="s"),
    ]


def _start(url: str, locks: Path) -> tuple[float, Child]:
    """Start a process and wait until it is idle; return the seconds until its first effect, and the process."""
    started = time.monotonic_ns()
    child = Child(url, NODE, ("gauge", "job"), locks)
    acted = None
    running = False
    while acted is None or not running:
        word, at = child.line()
        if word == "running":
            running = True
        else:
            acted = acted or at
    scratch.wait_until(lambda: _at_rest(url), "the process's first steps")
    return (acted - started) / 1e9, child


def _at_rest(url: str) -> bool:
    store = RedisStore(url, NODE)
    try:
        head = store.heads([JOB])[JOB]
        snapshot = store.read_snapshots([JOB]).get(JOB)
        last = store.last()
        return snapshot is not None and last.n - snapshot.position.n < TAIL + 100 and head.version > 0
    finally:
        store.close()
