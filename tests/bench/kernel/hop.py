"""A hop between processes: an event committed in this process and seen by a host in another.

Input: a redis-server. Output: medians, next to those of redis-py's PING on the same socket, one before each hop. The
commit waits for the disk and is not part of the hop: it is reported separately.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import NamedTuple

import redis

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Shard
from tests.bench.figures import Figure
from tests.bench.kernel import gauge
from tests.bench.kernel.child import Writer, begin, hosting

NODE = "hop"
HOPS = 50


class Times(NamedTuple):
    """Microseconds of each hop, of each commit together with its hop (`whole`), and of each ping."""

    hops: list[float]
    whole: list[float]
    pings: list[float]


def figures(url: str, client: redis.Redis, locks: Path, rounds: int) -> list[Figure]:
    """Measure alternating hops and pings with both settings of appendfsync."""
    store = RedisStore(url, NODE)
    begin(store, NODE)
    writer = Writer(store, Shard("gauge"))
    found = {mode: Times([], [], []) for mode in ("always", "everysec")}
    with hosting(url, NODE, ("ear",), locks):
        for _ in range(rounds):
            for mode, times in found.items():
                client.config_set("appendfsync", mode)
                _hop(store, writer, client, times)
    store.close()
    return [figure for mode, times in found.items() for figure in _figures(mode, times)]


def _figures(mode: str, times: Times) -> list[Figure]:
    ping = statistics.median(times.pings)
    judged = mode == "always"
    return [
        Figure(
            name=f"hop between processes, median ({mode})",
            ours=statistics.median(times.hops),
            unit="us",
            reference=ping,
            reference_name="us a redis-py PING",
            goal=5 if judged else None,
            note="from the writer's having its commit confirmed to the other process's host deciding the event:"
            " reading, routing, decoding and the two threads' wake-ups are in it, the disk is not"
            if judged
            else "",
        ),
        Figure(
            name=f"commit and hop, median ({mode})",
            ours=statistics.median(times.whole),
            unit="us",
            reference=ping,
            reference_name="us a redis-py PING",
            note="the same from the writer's sending its step: the commit and its fsync are in it" if judged else "",
        ),
    ]


def _hop(store: RedisStore, writer: Writer, client: redis.Redis, times: Times) -> None:
    after = store.last()
    for number in range(HOPS):
        started = time.monotonic_ns() / 1000
        client.ping()
        times.pings.append(time.monotonic_ns() / 1000 - started)
        record = gauge.record(gauge.measured(number), number, writer.actor)
        sent = time.monotonic_ns() / 1000
        committed = writer.commit([record])
        confirmed = time.monotonic_ns() / 1000
        received, after = _answer(store, committed.at, after)
        times.hops.append(received - confirmed)
        times.whole.append(received - sent)


def _answer(store: RedisStore, to: Position, after: Position) -> tuple[int, Position]:
    """Return the time at which `ear` received the event at `to`, and the position of the entry that says so. Raises
    TimeoutError after ten seconds.
    """
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for entry in store.wait(after, {}, 10, 1000).log:
            after = entry.position
            if entry.cause == str(to):
                return codec.decode(entry.type, entry.data, gauge.Heard).at_microseconds, after
    raise TimeoutError(f"no host received {to}")
