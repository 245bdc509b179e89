"""A node with one owned shard on a real server, and steps that fit the shard, for the tests in this folder."""

from chronolet.kernel.storage.redis.store import RedisStore, Timeouts
from chronolet.kernel.storage.store import Acquired, Step, Store
from chronolet_schemas.envelope import START, Position, Record
from chronolet_schemas.keys import Keys, Shard
from tests.support.patience import PATIENT

SHARD = Shard("pod", 0)
KEEPER = Shard("keeper")
KEYS = Keys("n")
STARTED = Record("kernel.LogStarted@1", "node/n", "", "kernel#0", "", b"\x80")


def record(number: int = 0) -> Record:
    return Record("pod.Happened@1", "pod/default/web", "", "pod/0#1", f"request-{number}", b"\x80")


def unchecked(url: str, *, timeouts: Timeouts = PATIENT, strict: bool = False) -> RedisStore:
    """Return a store that has made no call yet."""
    return RedisStore(url, "n", timeouts=timeouts, strict=strict)


def connect(url: str, *, timeouts: Timeouts = PATIENT, strict: bool = False) -> RedisStore:
    """Return a store whose server was checked and has the functions."""
    store = unchecked(url, timeouts=timeouts, strict=strict)
    store.check()
    return store


def begin(store: Store) -> str:
    """Begin the log and acquire the shard. Returns the shard's token."""
    store.begin("run-1", {"pod": 2, "keeper": 1}, STARTED)
    store.renew("p", "info", 3_600_000)
    return take(store, SHARD)


def take(store: Store, shard: Shard, process: str = "p") -> str:
    acquired = store.acquire(shard, store.heads([shard])[shard].token, process, 1)
    assert isinstance(acquired, Acquired)
    return acquired.head.token


def fitting(store: Store, token: str, count: int = 1, *, step_id: str = "s", **changes: object) -> Step:
    """Return a step of `count` events that fits the current state of the shard, except for the fields in `changes`."""
    head = store.heads([SHARD])[SHARD]
    cursors = {
        "log_cursor": head.log_cursor,
        "new_log_cursor": head.log_cursor,
        "mail_cursor": head.mail_cursor,
        "new_mail_cursor": head.mail_cursor,
    }
    fields = {"version": head.version, "schema": 1, "records": tuple(map(record, range(count))), **cursors, **changes}
    return Step(shard=SHARD, token=token, step_id=step_id, **fields)  # type: ignore[arg-type]


def numbers(store: Store, after: Position = START) -> list[int]:
    return [entry.position.n for entry in store.scan(after)]
