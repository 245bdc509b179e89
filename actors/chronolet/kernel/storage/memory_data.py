"""The data of one simulated server, used by `memory_store`.

Output: plain mutable tables guarded by one condition variable. Several stores may share them, as processes share a
server. Next: `memory_store`.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter

from msgspec.structs import replace

from chronolet.kernel.storage.members import Handover, Member
from chronolet.kernel.storage.redis.replies import NEVER_OWNED
from chronolet.kernel.storage.store import DeadLetter, Head, Snapshot
from chronolet_schemas.envelope import START, Entry, Mail, Position, Record
from chronolet_schemas.keys import Shard
from chronolet_schemas.times import AHEAD_MILLISECONDS, with_time


def wall_milliseconds() -> int:
    """Return the wall-clock time in milliseconds since the Unix epoch, like Redis's TIME."""
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class ShardData:
    """A shard's hash, mailbox and snapshot."""

    head: Head = NEVER_OWNED
    epoch: int = 0
    acquired_from: str | None = None
    mail: list[Mail] = field(default_factory=list)
    last_mail: Position = START
    requests: OrderedDict[str, None] = field(default_factory=OrderedDict)
    snapshot: Snapshot | None = None


class MemoryServer:
    """One node's data, shared by the stores of all its processes. Hold `changed` during every access."""

    def __init__(self, clock: Callable[[], int] = wall_milliseconds) -> None:
        self.clock = clock
        self.changed = threading.Condition()
        self.run = ""
        self.counts: dict[str, int] = {}
        self.requested: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        self.log: list[Entry] = []
        self.last = START
        self.archived = START
        self.trimmed = START
        self.dead: list[DeadLetter] = []
        self.leases: dict[str, tuple[str, int]] = {}
        self.renewals: dict[str, int] = {}
        self.members: dict[str, Member] = {}
        self.drained: set[str] = set()
        self.member_changes = 0
        """How often the processes were woken; see `Keys.membership`."""
        self.handovers: dict[Shard, tuple[Handover, int]] = {}
        self._shards: dict[Shard, ShardData] = {}

    def shard(self, shard: Shard) -> ShardData:
        """Return the shard's data, which is created on first use."""
        return self._shards.setdefault(shard, ShardData())

    def change_members(self) -> None:
        """Wake the processes that wait for a change of the members."""
        self.member_changes += 1
        self.changed.notify_all()

    def replace(self, shard: Shard, data: ShardData) -> None:
        """Replace all data of a shard."""
        self._shards[shard] = data

    def update(self, shard: Shard, **fields: object) -> None:
        """Replace fields of a shard's hash."""
        data = self.shard(shard)
        data.head = replace(data.head, **fields)

    def append(self, *records: Record) -> Position:
        """Append entries to the log, all with the same time in milliseconds. Returns the position of the last one."""
        now = self.clock()
        milliseconds = max(now, self.last.milliseconds)
        ahead = milliseconds - now >= AHEAD_MILLISECONDS
        for record in records:
            self.last = Position(milliseconds, self.last.n + 1)
            data = with_time(record.data, now) if ahead else record.data
            self.log.append(Entry(self.last, *record._replace(data=data)))
        return self.last

    def holds(self, at: Position) -> bool:
        """Whether the log has the entry at this position, or has trimmed it."""
        index = bisect_left(self.log, at, key=attrgetter("position"))
        if index < len(self.log):
            return index == 0 or self.log[index].position == at
        return not self.log and at <= self.last

    def next_mail(self, shard: Shard) -> Position:
        """Return the id of a mailbox's next entry: later than the last id and the cursor, even if the clock goes
        backwards.
        """
        data = self.shard(shard)
        latest = max(data.last_mail, data.head.mail_cursor)
        now = self.clock()
        return Position(now, 0) if now > latest.milliseconds else Position(latest.milliseconds, latest.n + 1)

    def living(self, process: str) -> bool:
        """Whether the process has renewed its lease within the time-to-live."""
        return process in self.leases and self.leases[process][1] > self.clock()

    def moved(self, process: str, counter: str) -> bool:
        """Whether the process has renewed its lease since its counter was read; an entry that is gone has not moved."""
        return process in self.renewals and str(self.renewals[process]) != counter

    def forget(self, process: str) -> None:
        """Remove the process from the list."""
        self.leases.pop(process, None)
        self.renewals.pop(process, None)
