"""In-memory store for tests and simulations; passes the same contract suite as the Redis store.

Input: the calls of the `Store` Protocol. Output: their results, immediately and without a network. All data is lost
when the process ends. Next: hosts in tests. Not simulated: keys of wrong types, a full server, exhausted ids, processes
of former releases.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Literal

from msgspec.structs import replace

from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_layout import MemoryLayout
from chronolet.kernel.storage.memory_members import MemoryMembers
from chronolet.kernel.storage.store import (
    DEAD_LETTERS,
    FIRST_BEAT,
    Acquired,
    Beat,
    Committed,
    Conflict,
    Fenced,
    Head,
    Inputs,
    NotFree,
    Proof,
    Renewed,
    Run,
    Snapshot,
    Step,
    StoreBroken,
    owner_of,
)
from chronolet_schemas.envelope import Entry, Mail, Position, Record
from chronolet_schemas.keys import Shard

MAILBOX_FULL = 10_000
REQUESTS_KEPT = 20_000

_position = attrgetter("position")
_id = attrgetter("id")


class MemoryStore(MemoryMembers, MemoryLayout):
    """A `Store` for one process, backed by a `MemoryServer`, by default a new one. A mailbox accepts at most
    `mailbox_full` waiting commands.
    """

    def __init__(self, server: MemoryServer | None = None, *, mailbox_full: int = MAILBOX_FULL) -> None:
        self._server = server or MemoryServer()
        self._mailbox_full = mailbox_full
        self._woken = False
        self._members_seen = -1

    # -- starting ------------------------------------------------------------------------------------------------

    def check(self) -> Sequence[str]:
        return []

    def begin(self, run: str, shards: Mapping[str, int], record: Record) -> Run:
        server = self._server
        with server.changed:
            if not server.run:
                server.run = run
                server.counts = dict(shards)
                server.append(record)
                server.changed.notify_all()
            return Run(run=server.run, shards=dict(server.counts), new=server.run == run)

    def record(self, run: str, record: Record) -> bool:
        server = self._server
        with server.changed:
            if not server.run or run != server.run:
                return False
            server.append(record)
            server.changed.notify_all()
            return True

    def run(self) -> str:
        with self._server.changed:
            return self._server.run

    # -- leases and ownership ------------------------------------------------------------------------------------

    def renew(self, process: str, info: str, ttl_milliseconds: int, beat: Beat = FIRST_BEAT) -> Renewed:
        server = self._server
        with server.changed:
            before = server.renewals.get(process, 0)
            known = before >= beat.answered
            server.leases[process] = (info, server.clock() + ttl_milliseconds)
            server.renewals[process] = max(beat.number, before) if beat.answered else beat.number
            return Renewed(known=known, tokens={shard: server.shard(shard).head.token for shard in beat.shards})

    def retire(self, process: str, shards: Sequence[tuple[Shard, str]]) -> None:
        server = self._server
        with server.changed:
            for shard, token in shards:
                if token and server.shard(shard).head.token == token:
                    server.update(shard, token="", unowned_since=server.clock())
            server.forget(process)
            server.change_members()

    def heads(self, shards: Sequence[Shard]) -> Mapping[Shard, Head]:
        with self._server.changed:
            return {shard: self._server.shard(shard).head for shard in shards}

    def alive(self) -> Mapping[str, str]:
        server = self._server
        with server.changed:
            return {process: info for process, (info, _) in server.leases.items() if server.living(process)}

    def renewals(self) -> Mapping[str, str]:
        with self._server.changed:
            return {process: str(number) for process, number in self._server.renewals.items()}

    def forget_dead(self) -> None:
        server = self._server
        with server.changed:
            for process in [one for one in {*server.renewals, *server.members} if not server.living(one)]:
                server.forget(process)
                server.members.pop(process, None)
            server.drained &= server.members.keys() | server.renewals.keys()

    def acquire(
        self,
        shard: Shard,
        expected_token: str,
        process: str,
        schema: int,
        *,
        proof: Proof = "released",
        counter: str = "",
    ) -> Acquired | NotFree:
        server = self._server
        with server.changed:
            data = server.shard(shard)
            token = data.head.token
            owner = owner_of(token)
            if token != expected_token:
                if owner == process and data.acquired_from == expected_token:
                    return Acquired(head=data.head)
                return NotFree(reason="changed", token=token)
            if data.head.schema > schema:
                return NotFree(reason="newer_schema", token=token)
            if owner not in ("", process):
                if proof == "released" or (proof == "counter" and server.moved(owner, counter)):
                    return NotFree(reason="alive", token=token)
                server.forget(owner)
            data.epoch += 1
            data.acquired_from = token
            server.update(shard, token=f"{data.epoch}:{process}", unowned_since=0, acquired_at=server.clock())
            return Acquired(head=data.head)

    def unowned(self, shard: Shard, token: str) -> int | None:
        server = self._server
        with server.changed:
            head = server.shard(shard).head
            if head.token != token:
                return None
            if token and server.living(owner_of(token)):
                server.update(shard, unowned_since=0)
                return None
            since = head.unowned_since or server.clock()
            server.update(shard, unowned_since=since)
            return max(0, server.clock() - since)

    # -- the step ------------------------------------------------------------------------------------------------

    def step(self, step: Step) -> Committed | Fenced | Conflict:
        server = self._server
        with server.changed:
            head = server.shard(step.shard).head
            if not step.token or head.token != step.token:
                return Fenced(token=head.token)
            if head.step_id == step.step_id and head.version == step.version + 1:
                return Committed(version=head.version, at=head.at)
            if (head.version, head.log_cursor, head.mail_cursor) != (step.version, step.log_cursor, step.mail_cursor):
                return Conflict(head.version, head.log_cursor, head.mail_cursor, head.step_id, head.at)
            if step.new_log_cursor < step.log_cursor or step.new_mail_cursor < step.mail_cursor:
                raise StoreBroken(f"a step of {step.shard} was refused and nothing was written: a cursor goes back")
            if not server.run:
                raise StoreBroken(f"a step of {step.shard} was refused and nothing was written: the log is gone")
            if self._lacks(step):
                return Conflict(head.version, head.log_cursor, head.mail_cursor, head.step_id, head.at)
            return self._commit(step, head)

    def _lacks(self, step: Step) -> bool:
        """Whether the server has lost the entries that the step consumes."""
        mails = self._server.shard(step.shard).mail
        lost_mail = step.new_mail_cursor != step.mail_cursor and all(mail.id != step.new_mail_cursor for mail in mails)
        return lost_mail or (step.new_log_cursor != step.log_cursor and not self._server.holds(step.new_log_cursor))

    def _commit(self, step: Step, head: Head) -> Committed:
        server = self._server
        at = server.append(*step.records) if step.records else head.at
        server.dead = [*server.dead, *step.dead][-DEAD_LETTERS:] if step.dead else server.dead
        server.update(
            step.shard,
            version=head.version + 1,
            step_id=step.step_id,
            at=at,
            log_cursor=step.new_log_cursor,
            mail_cursor=step.new_mail_cursor,
            attempts={
                message: count for message, count in head.attempts.items() if message not in step.forget_attempts
            },
            schema=max(head.schema, step.schema),
        )
        data = server.shard(step.shard)
        data.mail = [mail for mail in data.mail if mail.id >= step.new_mail_cursor]
        server.changed.notify_all()
        return Committed(version=head.version + 1, at=at)

    def count_attempts(self, shard: Shard, token: str, counts: Mapping[str, int]) -> Fenced | None:
        with self._server.changed:
            head = self._server.shard(shard).head
            if not token or head.token != token:
                return Fenced(token=head.token)
            self._server.update(shard, attempts={**head.attempts, **counts})
            return None

    # -- reading -------------------------------------------------------------------------------------------------

    def read_log(self, after: Position, count: int, upto: Position | None = None) -> Sequence[Entry]:
        log = self._server.log
        with self._server.changed:
            begin = bisect_right(log, after, key=_position)
            end = len(log) if upto is None else bisect_right(log, upto, key=_position)
            return log[begin : min(begin + count, max(begin, end))]

    def scan(self, after: Position, upto: Position | None = None) -> Iterator[Entry]:
        while page := self.read_log(after, 500, upto):
            yield from page
            after = page[-1].position

    def last(self) -> Position:
        with self._server.changed:
            return self._server.last

    def read_mail(self, shard: Shard, after: Position, count: int) -> Sequence[Mail]:
        with self._server.changed:
            mails = self._server.shard(shard).mail
            return mails[bisect_right(mails, after, key=_id) :][:count]

    def wait(
        self,
        log_after: Position | None,
        mail_after: Mapping[Shard, Position],
        count: int,
        block_milliseconds: int,
        *,
        members: bool = False,
    ) -> Inputs:
        deadline = time.monotonic() + block_milliseconds / 1000
        with self._server.changed:
            while True:
                inputs = self._inputs(log_after, mail_after, count, members=members)
                left = deadline - time.monotonic()
                if inputs.log or inputs.mail or inputs.members_changed or self._woken or left <= 0:
                    self._woken = False
                    return inputs
                self._server.changed.wait(left)

    def _inputs(
        self, log_after: Position | None, mail_after: Mapping[Shard, Position], count: int, *, members: bool
    ) -> Inputs:
        mail: dict[Shard, Sequence[Mail]] = {}
        for shard, after in mail_after.items():
            found = self.read_mail(shard, after, count)
            if found:
                mail[shard] = found
        log = self.read_log(log_after, count) if log_after is not None else ()
        changed = members and self._members_seen != self._server.member_changes
        if changed:
            self._members_seen = self._server.member_changes
        return Inputs(log=log, mail=mail, members_changed=changed)

    def wake(self) -> None:
        with self._server.changed:
            self._woken = True
            self._server.changed.notify_all()

    # -- commands ------------------------------------------------------------------------------------------------

    def send(
        self, shard: Shard, mail_type: str, entity: str, request: str, data: bytes, *, of: int = 0
    ) -> Literal["sent", "duplicate", "busy", "moved"]:
        server = self._server
        if not request:
            raise StoreBroken("send was refused and nothing was written: a request id is needed")
        with server.changed:
            if of and server.counts.get(shard.kind) != of:
                return "moved"
            box = server.shard(shard)
            if request in box.requests:
                return "duplicate"
            if sum(mail.id > box.head.mail_cursor for mail in box.mail) >= self._mailbox_full:
                return "busy"
            box.last_mail = server.next_mail(shard)
            box.mail.append(Mail(box.last_mail, mail_type, entity, request, data))
            box.requests[request] = None
            if len(box.requests) > REQUESTS_KEPT:
                box.requests.popitem(last=False)
            server.changed.notify_all()
            return "sent"

    # -- snapshots, archive, trimming ----------------------------------------------------------------------------

    def snapshot(self, shard: Shard, token: str, snapshot: Snapshot) -> bool:
        with self._server.changed:
            data = self._server.shard(shard)
            if not token or data.head.token != token:
                return False
            before = data.snapshot
            same_place = before is not None and before.position == snapshot.position
            grows = before is None or snapshot.position > before.position
            if not grows and not (same_place and before is not None and before.format != snapshot.format):
                return False
            if not self._server.holds(snapshot.position):
                return False
            data.snapshot = replace(snapshot)
            return True

    def read_snapshots(self, shards: Sequence[Shard]) -> Mapping[Shard, Snapshot]:
        with self._server.changed:
            found = {shard: self._server.shard(shard).snapshot for shard in shards}
        return {shard: snapshot for shard, snapshot in found.items() if snapshot is not None}

    def archived(self) -> tuple[Position, Position]:
        with self._server.changed:
            return self._server.archived, self._server.trimmed

    def mark_archived(self, keeper: Shard, token: str, upto: Position) -> bool:
        with self._server.changed:
            if not token or self._server.shard(keeper).head.token != token:
                return False
            self._server.archived = max(self._server.archived, upto)
            return True

    def trim(self, keeper: Shard, token: str, upto: Position, holding: Sequence[Shard]) -> int | Fenced:
        server = self._server
        with server.changed:
            head = server.shard(keeper).head
            if not token or head.token != token:
                return Fenced(token=head.token)
            limit = min(upto, server.archived)
            for shard in holding:
                data = server.shard(shard)
                kept = data.snapshot.position if data.snapshot else Position(0, 0)
                limit = min(limit, data.head.log_cursor, kept)
            count = bisect_right(server.log, limit, key=_position)
            if count:
                del server.log[:count]
                server.trimmed = limit
            return count

    def sizes(self) -> Mapping[str, int]:
        server = self._server
        with server.changed:
            return {
                "entries": len(server.log),
                "dead": len(server.dead),
                "bytes": sum(len(entry.data) for entry in server.log),
                "first_milliseconds": server.log[0].position.milliseconds if server.log else 0,
                "last_milliseconds": server.last.milliseconds,
            }

    def close(self) -> None:
        self.wake()
