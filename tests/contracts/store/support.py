"""Shards, records and steps for the contract tests of the store."""

from collections.abc import Callable

from chronolet.kernel.storage.store import (
    Acquired,
    Committed,
    Step,
    Store,
)
from chronolet_schemas.envelope import Record
from chronolet_schemas.keys import Shard

SHARD = Shard("pod", 0)
OTHER = Shard("pod", 1)
KEEPER = Shard("keeper")
SHARDS = {"pod": 2, "keeper": 1}
TTL = 3_600_000

Another = Callable[[], Store]


def record(number: int) -> Record:
    return Record(
        "pod.Happened@1", "pod/default/web", "", "pod/0#1", f"request-{number}", b"\x81\xa1n" + bytes([number % 128])
    )


STARTED = Record("kernel.LogStarted@1", "node/n", "", "kernel#0", "", b"\x80")


def take(store: Store, shard: Shard = SHARD, process: str = "p") -> str:
    token = store.heads([shard])[shard].token
    acquired = store.acquire(shard, token, process, 1)
    assert isinstance(acquired, Acquired)
    return acquired.head.token


def step(store: Store, token: str, *, shard: Shard = SHARD, step_id: str = "s", **changes: object) -> Step:
    """Return a step that fits the current hash of the shard."""
    head = store.heads([shard])[shard]
    fields = {
        "version": head.version,
        "log_cursor": head.log_cursor,
        "new_log_cursor": head.log_cursor,
        "mail_cursor": head.mail_cursor,
        "new_mail_cursor": head.mail_cursor,
        "records": (),
    }
    return Step(shard=shard, token=token, step_id=step_id, **{"schema": 1, **fields, **changes})  # type: ignore[arg-type]


def commit(store: Store, token: str, count: int = 1, **changes: object) -> Committed:
    records = tuple(record(number) for number in range(count))
    answer = store.step(step(store, token, records=records, **changes))
    assert isinstance(answer, Committed), answer
    return answer
