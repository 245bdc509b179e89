"""A node's log in a real Redis, written by shards of the test, with the keeper's workers.

Input: a server, a folder. Output: `Desk`: the log as it was written, runs of the keeper's effects with or without a
crash, and the whole history as it is read back.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chronolet.adapters.archive.places import place
from chronolet.adapters.probes.results.segment_files import ArchivedSegments
from chronolet.adapters.probes.results.segment_stream import RedisSegments
from chronolet.history.archives import NodeArchive
from chronolet.history.entries import entries
from chronolet.keeper import signals, wanted
from chronolet.keeper.disk import DiskReports
from chronolet.keeper.effects import KEEPER, Keeping
from chronolet.keeper.workers.probe_keeping import ProbeKeeping
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Acquired, Committed, Snapshot, Step
from chronolet_schemas import codec
from chronolet_schemas.envelope import START, Entry, Position, Record, Signal
from chronolet_schemas.kernel import ClockJumped, LogStarted
from chronolet_schemas.keys import Shard

NODE = "n"
POD, PLEG, NEVER_OWNED = Shard("pod", 0), Shard("pleg"), Shard("prober", 3)
TTL = 600_000


class Crash(BaseException):
    """A simulated crash of the process."""


class Context:
    """An `EffectContext` that raises Crash at the point `crash_at`, such as `1 before log.trim`: its number, from 1,
    and its name. The first signal cancels the effect.
    """

    entity, cause, resume = "node", "1-1", ""

    def __init__(self, token: str, crash_at: str = "") -> None:
        self.token = token
        self.cancelled = threading.Event()
        self.passed: list[str] = []
        self.sent: list[Signal] = []
        self._crash_at = crash_at

    def fence(self, point: str) -> None:
        self._pass(f"before {point}")

    def done(self, point: str) -> None:
        self._pass(f"after {point}")

    def send(self, signal: Signal, *, cause: str = "") -> None:
        self.sent.append(signal)
        self.cancelled.set()

    def _pass(self, point: str) -> None:
        self.passed.append(point)
        if f"{len(self.passed)} {point}" == self._crash_at:
            raise Crash


class Desk:
    """A log and its keeper. `written`: every entry that the test has appended."""

    def __init__(self, url: str, folder: Path) -> None:
        self.store = RedisStore(url, NODE)
        self.store.check()
        self.folder = folder
        self.url = url
        self.written: list[Entry] = []
        self.tokens: dict[Shard, str] = {}
        self.now = time.time_ns() // 1_000_000
        started = LogStarted(run="run-1", node=NODE, shards={"pod": 1})
        record = Record("kernel.LogStarted@1", f"node/{NODE}", "", "process/p", "", codec.encode(started))
        self.store.begin("run-1", {"pod": 2, "pleg": 1, "keeper": 1, "prober": 4}, record)
        self.store.renew("p", "everything", TTL)
        self.node_archive = NodeArchive(place("", folder), NODE, self.store)
        self.archive = self.node_archive.current()
        self.segments = RedisSegments(url, NODE)
        self.keeping = Keeping(
            store=self.store,
            archive=self.node_archive.current,
            now=lambda: self.now,
            disk=DiskReports(),
            probes=ProbeKeeping(self.segments, self.node_archive.current, ArchivedSegments, self.store),
        )
        for shard in (KEEPER, POD, PLEG):
            self.take(shard)
        self._read()

    # -- the log -------------------------------------------------------------------------------------------------
    def take(self, shard: Shard, process: str = "p") -> None:
        before = self.store.heads([shard])[shard].token
        answer = self.store.acquire(shard, before, process, 1, proof="lock" if before else "released")
        assert isinstance(answer, Acquired), answer
        self.tokens[shard] = answer.head.token

    def write(self, count: int, shard: Shard = POD) -> Position:
        """Append `count` events, a hundred per step; return the position of the last one."""
        for first in range(0, count, 100):
            data = [codec.encode(ClockJumped(by_milliseconds=number)) for number in range(min(100, count - first))]
            record = ("kernel.ClockJumped@1", f"{shard.kind}/default/web", "container/app", f"{shard}#1", "request-1")
            self._step(shard, tuple(Record(*record, each) for each in data))
        return self._read()

    def keep_up(self, *shards: Shard, snapshots: bool = True) -> None:
        """Make these shards read everything, and store snapshots of the result if `snapshots` is set."""
        last = self.store.last()
        for shard in shards:
            self._step(shard, (), cursor=last)
            if snapshots:
                assert self.store.snapshot(shard, self.tokens[shard], Snapshot(last, 1, b"state"))

    def _step(self, shard: Shard, records: tuple[Record, ...], cursor: Position | None = None) -> None:
        head = self.store.heads([shard])[shard]
        step = Step(
            shard=shard,
            token=self.tokens[shard],
            version=head.version,
            step_id=uuid.uuid4().hex,
            schema=1,
            log_cursor=head.log_cursor,
            new_log_cursor=cursor or head.log_cursor,
            mail_cursor=head.mail_cursor,
            new_mail_cursor=head.mail_cursor,
            records=records,
        )
        assert isinstance(self.store.step(step), Committed)

    def _read(self) -> Position:
        last = self.written[-1].position if self.written else START
        self.written += self.store.scan(last)
        return self.written[-1].position

    # -- the keeper's effects ------------------------------------------------------------------------------------
    def archive_upto(self, upto: Position, crash_at: str = "") -> Signal:
        after = str(self.store.archived()[0])
        return self.archive_part(after, upto, crash_at)

    def archive_part(self, after: str, upto: Position, crash_at: str = "") -> Signal:
        effect = wanted.WriteArchive(subject="job", intent="job/1", after=after, upto=str(upto))
        return self.keeping.write(effect, Context(self.tokens[KEEPER], crash_at))

    def trim(self, upto: Position, crash_at: str = "", let_go: tuple[str, ...] = ()) -> Signal:
        effect = wanted.TrimLog(subject="job", intent="job/1", upto=str(upto), let_go=let_go)
        return self.keeping.trim(effect, Context(self.tokens[KEEPER], crash_at))

    def measured(self) -> signals.LogMeasured:
        context = Context(self.tokens[KEEPER])
        self.keeping.measure(wanted.MeasureLog(subject="measure", intent="measure"), context)
        (measured,) = context.sent
        assert isinstance(measured, signals.LogMeasured)
        return measured

    # -- the history ---------------------------------------------------------------------------------------------
    def history(self, after: Position = START) -> list[Entry]:
        """Return archive and stream as one history."""
        return list(entries(self.store, self.node_archive, after))

    def in_stream(self) -> list[Entry]:
        return list(self.store.scan(START))

    def files(self) -> list[Path]:
        return [Path(self.archive.storage.place(part.name)) for part in self.archive.files()]


@contextmanager
def desk(url: str, folder: Path) -> Iterator[Desk]:
    desk = Desk(url, folder)
    try:
        yield desk
    finally:
        desk.segments.close()
        desk.store.close()
