"""Writing: a hundred events per step, and one message at a time from the mailbox to its effect, next to redis-py's
XADD.

Input: a redis-server. Output: figures with both settings of appendfsync, the cases interleaved.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import redis

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import FIELDS
from chronolet_schemas.keys import Shard
from tests.bench.figures import Figure, interleaved
from tests.bench.kernel import gauge
from tests.bench.kernel.child import Child, Writer, begin, hosting

NODE = "writing"
BATCH = 100
BATCHES = 60
MESSAGES = 600
ALONE = 150
JOB = Shard("job")

_numbers = itertools.count()


def figures(url: str, client: redis.Redis, locks: Path, rounds: int) -> list[Figure]:
    """Measure all cases with both settings of appendfsync; return the figures of their medians."""
    store = RedisStore(url, NODE)
    begin(store, NODE)
    writer = Writer(store, Shard("gauge"))
    entry = _entry(writer)
    with hosting(url, NODE, ("job",), locks) as child:
        cases: dict[str, Callable[[], float]] = {}
        for mode in ("always", "everysec"):
            cases |= {
                f"step {mode}": _under(client, mode, lambda: steps(writer)),
                f"pipe {mode}": _under(client, mode, lambda: pipelined(client, entry)),
                f"flow {mode}": _under(client, mode, lambda: flow(store, child)),
                f"xadd {mode}": _under(client, mode, lambda: singly(client, entry)),
                f"alone {mode}": _under(client, mode, lambda: alone(store, child)),
            }
        medians = interleaved(cases, rounds)
    client.config_set("appendfsync", "always")
    store.close()
    return [figure for mode in ("always", "everysec") for figure in _figures(mode, medians)]


def _figures(mode: str, medians: dict[str, float]) -> list[Figure]:
    judged = mode == "always"
    return [
        Figure(
            name=f"events only, 100 a step ({mode})",
            ours=medians[f"step {mode}"],
            unit="events/s",
            reference=medians[f"pipe {mode}"],
            reference_name="XADD/s in pipelines of 100",
            goal=0.7 if judged else None,
            bound="at least",
            note="making and encoding the events, then the store's step; redis-py adds the same six fields, encoded"
            " before"
            if judged
            else "",
        ),
        Figure(
            name=f"one message at a time, mailbox to effect ({mode})",
            ours=medians[f"flow {mode}"],
            unit="messages/s",
            reference=medians[f"xadd {mode}"],
            reference_name="single XADD/s",
            goal=0.3 if judged else None,
            bound="at least",
            note="one feeder sends command after command, each call awaited; another process hosts: each command"
            " becomes a typical event and an effect that writes a line; from the first send to the last line. The host"
            " folds what waits, and the results' events are committed in the same time"
            if judged
            else "",
        ),
        Figure(
            name=f"one message alone, send to effect ({mode})",
            ours=1e6 / medians[f"alone {mode}"],
            unit="us",
            reference=1e6 / medians[f"xadd {mode}"],
            reference_name="us a single XADD",
            note="the next is sent when the last one's effect has run" if judged else "",
        ),
    ]


def _under(client: redis.Redis, mode: str, case: Callable[[], float]) -> Callable[[], float]:
    def run() -> float:
        client.config_set("appendfsync", mode)
        return case()

    return run


def _entry(writer: Writer) -> dict[str, str | bytes]:
    return dict(zip(FIELDS, gauge.record(gauge.measured(1), 1, writer.actor), strict=True))


def steps(writer: Writer) -> float:
    """Return the events per second that are created, encoded and committed in steps of a hundred events."""
    started = time.perf_counter()
    for _ in range(BATCHES):
        numbers = [next(_numbers) for _ in range(BATCH)]
        writer.commit([gauge.record(gauge.measured(number), number, writer.actor) for number in numbers])
    return BATCHES * BATCH / (time.perf_counter() - started)


def pipelined(client: redis.Redis, entry: dict[str, str | bytes]) -> float:
    """Return the XADDs per second in pipelines of a hundred, without transactions."""
    started = time.perf_counter()
    for _ in range(BATCHES):
        with client.pipeline(transaction=False) as pipeline:
            for _ in range(BATCH):
                pipeline.xadd("reference", entry)  # type: ignore[arg-type]
            pipeline.execute()
    return BATCHES * BATCH / (time.perf_counter() - started)


def singly(client: redis.Redis, entry: dict[str, str | bytes]) -> float:
    """Return the XADDs per second, sent one after the other."""
    started = time.perf_counter()
    for _ in range(MESSAGES):
        client.xadd("reference", entry)  # type: ignore[arg-type]
    return MESSAGES / (time.perf_counter() - started)


def _send(store: RedisStore) -> int:
    number = next(_numbers)
    command = gauge.Run(request=f"request-{number}", number=number)
    answer = store.send(JOB, registry.type_of(gauge.Run), f"job/{number}", command.request, codec.encode(command))
    assert answer == "sent", answer
    return number


def flow(store: RedisStore, child: Child) -> float:
    """Return the messages per second, measured from the first send to the last effect."""
    started = time.monotonic_ns()
    sent = {str(_send(store)) for _ in range(MESSAGES)}
    lines = [child.line() for _ in range(MESSAGES)]
    assert {word for word, _ in lines} == sent, "each command's effect ran, once"
    return MESSAGES / (max(at for _, at in lines) - started) * 1e9


def alone(store: RedisStore, child: Child) -> float:
    """Return the messages per second if each message is sent after the effect of the previous one."""
    spent = 0
    for _ in range(ALONE):
        started = time.monotonic_ns()
        number = _send(store)
        word, at = child.line()
        assert word == str(number)
        spent += at - started
    return ALONE / spent * 1e9
