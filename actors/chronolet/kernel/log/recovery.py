"""Recovers shards: one scan of the log rebuilds the states and backlogs of all shards of a process.

Input: acquired shards with their heads, their snapshots, and the history (archive and stream as one). Output: a
`Recovered` for each shard. Its backlog contains the commands in the mailbox first, then the log entries that the shard
has not consumed. An unreadable snapshot is ignored: the history is then folded from its beginning. Next: `host`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import structlog

from chronolet.kernel.host.host_handle import Recovered
from chronolet.kernel.kind import Kind
from chronolet.kernel.step.inherited import undecided
from chronolet.kernel.step.ledger import Ledger
from chronolet.kernel.step.routing import Router
from chronolet.kernel.step.snapshots import decode_states, snapshot_format
from chronolet.kernel.storage.store import DeadLetter, Head, Snapshot, Store, StoreBroken
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import START, Entry, Event, Mail, Position
from chronolet_schemas.keys import Shard
from chronolet_schemas.times import time_of

log = structlog.get_logger("chronolet.kernel")

MAILS_AT_ONCE = 1_000
QUARANTINED = registry.type_of(kernel.EntryQuarantined).partition("@")[0]

History = Callable[[Position], Iterable[Entry]]
"""A function that yields all entries after a position, oldest first. Entries trimmed from the stream come from archive
files.
"""


class _Owners(dict[str, tuple[Recovered | None, str]]):
    """Maps each entity to the recovered state of its shard (None if the shard is not recovered here) and to the
    entity's key. It is a cache, because a scan looks up every entry's entity.
    """

    def __init__(self, router: Router, recovered: Mapping[Shard, Recovered]) -> None:
        super().__init__()
        self._router = router
        self._recovered = recovered

    def __missing__(self, entity: str) -> tuple[Recovered | None, str]:
        owner = self._router.owner(entity)
        each = self._recovered.get(owner) if owner else None
        self[entity] = each, entity.partition("/")[2]
        return self[entity]


class Recovery:
    """One recovery of one or more shards."""

    def __init__(self, kinds: Mapping[str, Kind[Any]], router: Router, store: Store, history: History) -> None:
        self._kinds = kinds
        self._router = router
        self._store = store
        self._history = history
        self.read = 0
        """Number of entries that `run` has read."""
        self._unreadable: dict[str, dict[str, tuple[Event, DeadLetter]]] = {}
        """Unreadable events that are not reported in the log yet: `shard/<shard>` -> position -> the event and the dead
        letter that report it.
        """

    def run(self, acquired: Mapping[Shard, tuple[str, Head]], careful: frozenset[Shard]) -> dict[Shard, Recovered]:
        """Recover these shards in one scan. `acquired`: shard -> (token, head). `careful`: the shards whose hosts have
        failed in this process; their new hosts count attempts at messages.
        """
        if not acquired:
            return {}
        snapshots = self._snapshots(list(acquired))
        recovered = {
            shard: self._begin(shard, *held, snapshots.get(shard), careful=shard in careful)
            for shard, held in acquired.items()
        }
        start = min(min(each.snapshot_at, each.ledger.log_cursor) for each in recovered.values())
        newest, last = start, None
        unread = min(each.ledger.log_cursor for each in recovered.values())
        owners = _Owners(self._router, recovered)
        for entry in self._history(start):
            self.read += 1
            newest, last = entry.position, entry
            each, key = owners[entry.entity]
            if each is not None and newest > each.snapshot_at:
                self._fold(entry, each, key)
            if self._unreadable and entry.type.startswith(QUARANTINED):
                self._drop_reported(entry)
            if newest <= unread:
                continue
            for shard, item in self._router.route(entry, recovered.keys()):
                if newest > recovered[shard].ledger.log_cursor:
                    left = undecided(item, shard.kind, acquired[shard][1].decided)
                    recovered[shard].backlog += () if left is None else (left,)
        log_time = time_of(last) if last else self._time_of(newest)
        for each in recovered.values():
            each.read_to = newest
            each.log_time = log_time
            self._open_mail(each)
            for note, letter in self._unreadable.get(f"shard/{each.ledger.shard}", {}).values():
                each.notes.append(note)
                each.dead.append(letter)
        return recovered

    def _time_of(self, position: Position) -> int:
        """Return when the entry at this position was written; that of the position if the entry was trimmed."""
        found = self._store.read_log(Position(position.milliseconds, position.n - 1), 1) if position.n else ()
        return time_of(found[0]) if found and found[0].position == position else position.milliseconds

    def _snapshots(self, shards: Sequence[Shard]) -> Mapping[Shard, Snapshot]:
        """Read the snapshots in one round trip. If any of them is unreadable, read each separately and leave out the
        unreadable ones, with a warning.
        """
        try:
            return self._store.read_snapshots(shards)
        except StoreBroken as error:
            if len(shards) > 1:
                return {shard: one for each in shards for shard, one in self._snapshots([each]).items()}
            log.warning("unreadable snapshot ignored", shard=str(shards[0]), error=str(error))
            return {}

    def _begin(self, shard: Shard, token: str, head: Head, snapshot: Snapshot | None, *, careful: bool) -> Recovered:
        kind = self._kinds[shard.kind]
        ledger = Ledger(kind, shard, token, head, registry.SCHEMA)
        ledger.snapshot_format = snapshot_format(kind, self._router.count(kind.name))
        at = self._restore(ledger, kind, snapshot)
        return Recovered(
            ledger, [], START, careful=careful, mail_to=head.mail_cursor, snapshot_at=at, attempts=head.attempts
        )

    def _open_mail(self, each: Recovered) -> None:
        """Put the mailbox's commands first in the backlog: commands sent while the shard had no owner are decided
        before results of its effects.
        """
        shard = each.ledger.shard
        mails: list[Mail] = []
        with contextlib.suppress(StoreBroken):  # the reader, which continues from here, reports the error
            while page := self._store.read_mail(shard, mails[-1].id if mails else each.mail_to, MAILS_AT_ONCE):
                mails += page
        if mails:
            each.backlog[:0] = [self._router.mail(shard, mail) for mail in mails]
            each.mail_to = mails[-1].id

    def _restore(self, ledger: Ledger[Any], kind: Kind[Any], snapshot: Snapshot | None) -> Position:
        if snapshot is None:
            return START
        if snapshot.format != ledger.snapshot_format:
            at = str(snapshot.position)
            log.warning(
                "snapshot with another format ignored", shard=str(ledger.shard), position=at, format=snapshot.format
            )
            return START
        try:
            ledger.restore(decode_states(kind.state, snapshot.state))
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            at = str(snapshot.position)
            log.warning("unreadable snapshot ignored", shard=str(ledger.shard), position=at, error=str(error))
            return START
        return snapshot.position

    def _fold(self, entry: Entry, each: Recovered, key: str) -> None:
        try:
            event = codec.decode(entry.type, entry.data, Event)
        except codec.Undecodable as error:
            self._quarantine(entry, each, str(error))
        else:
            each.ledger.replay(key, event, entry.subject, entry.position)

    def _quarantine(self, entry: Entry, each: Recovered, error: str) -> None:
        log.error("unreadable log entry quarantined", position=str(entry.position), type=entry.type, error=error)
        at = str(entry.position)
        quarantined = kernel.EntryQuarantined(message=entry.type, source="log", at=at, error=error)
        letter = DeadLetter("log", at, entry.type, entry.entity, entry.data, error)
        self._unreadable.setdefault(f"shard/{each.ledger.shard}", {})[at] = quarantined, letter

    def _drop_reported(self, entry: Entry) -> None:
        """Do not report an unreadable event again if this entry, written by an earlier recovery of the shard, already
        reports it.
        """
        unreadable = self._unreadable.get(entry.entity)
        if unreadable:
            with contextlib.suppress(codec.Undecodable):
                reported = codec.decode(entry.type, entry.data, kernel.EntryQuarantined)
                unreadable.pop(reported.at, None)
