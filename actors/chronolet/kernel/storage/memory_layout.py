"""The layout of a log in memory: the calls of `LayoutStore` on a `MemoryServer`.

Input: the calls. Output: their results. Next: `memory_store`, whose `MemoryStore` inherits `MemoryLayout`.
"""

from __future__ import annotations

from collections import OrderedDict

from chronolet.kernel.storage.layout import Layout, Outdated, Reshard, Resharded
from chronolet.kernel.storage.memory_data import MemoryServer, ShardData
from chronolet.kernel.storage.store import Head, Snapshot, StoreBroken
from chronolet_schemas.envelope import START, Mail, Position, Record
from chronolet_schemas.keys import Shard, shards_of


class MemoryLayout:
    """The part of a `MemoryStore` that concerns the layout."""

    _server: MemoryServer

    def layout(self) -> Layout:
        server = self._server
        with server.changed:
            return Layout(server.run, dict(server.counts), dict(server.requested), dict(server.refused))

    def request_shards(self, kind: str, count: int) -> bool:
        server = self._server
        with server.changed:
            if kind not in server.counts:
                return False
            server.requested.pop(kind, None)
            server.refused.pop(kind, None)
            if server.counts[kind] != count:
                server.requested[kind] = count
            server.change_members()
            return True

    def refuse_shards(self, kind: str, count: int, reason: str) -> None:
        server = self._server
        with server.changed:
            if server.requested.get(kind) == count:
                del server.requested[kind]
                server.refused[kind] = reason
                server.change_members()

    def reshard(self, change: Reshard) -> Resharded | Outdated:
        server = self._server
        former = shards_of(change.kind, change.before)
        with server.changed:
            if server.counts.get(change.kind) != change.before:
                return Outdated("count")
            if change.read_to != START and not server.holds(change.read_to):
                return Outdated("log")
            if any(not change.tokens[shard] or _token(server, shard) != change.tokens[shard] for shard in former):
                return Outdated("owner")
            if any(_mail_end(server, shard) != change.mail_ends[shard] for shard in former):
                return Outdated("mail")
            at = server.append(*change.records)
            _rewrite(server, change, at)
            server.counts[change.kind] = change.after
            server.requested.pop(change.kind, None)
            server.refused.pop(change.kind, None)
            server.change_members()
            return Resharded(at)

    def add_kind(self, kind: str, shards: int, record: Record) -> int:
        server = self._server
        with server.changed:
            if not server.run:
                raise StoreBroken(f"add_kind of {kind} was refused and nothing was written: the log is gone")
            if kind not in server.counts:
                server.counts[kind] = shards
                server.append(record)
                server.changed.notify_all()
            return server.counts[kind]


def _token(server: MemoryServer, shard: Shard) -> str:
    return server.shard(shard).head.token


def _mail_end(server: MemoryServer, shard: Shard) -> Position:
    data = server.shard(shard)
    return max(data.last_mail, data.head.mail_cursor)


def _rewrite(server: MemoryServer, change: Reshard, at: Position) -> None:
    """Replace the data of the former shards with that of the new shards."""
    former, new = shards_of(change.kind, change.before), shards_of(change.kind, change.after)
    union = {*former, *new}
    data = {shard: server.shard(shard) for shard in union}
    epoch = 1 + max(one.epoch for one in data.values())
    mail_cursor = max(max(one.last_mail, one.head.mail_cursor) for one in data.values())
    moved = {(shard, mail.id): mail for shard in former for mail in data[shard].mail}
    requests = OrderedDict((request, None) for shard in former for request in data[shard].requests)
    head = Head(
        token="",
        version=1 + max(one.head.version for one in data.values()),
        step_id="",
        at=at,
        log_cursor=change.log_cursor,
        mail_cursor=mail_cursor,
        attempts=dict(change.attempts),
        schema=change.schema,
        unowned_since=server.clock(),
        shards=change.after,
        decided=change.decided,
        unclean_epoch=epoch if change.unclean else 0,
    )
    for shard in union:
        written = ShardData(head=head, epoch=epoch)
        if shard in new:
            written.requests = requests.copy()
            if change.read_to != START:
                written.snapshot = Snapshot(change.read_to, change.format, change.states[shard])
        server.replace(shard, written)
    milliseconds = max(server.clock(), mail_cursor.milliseconds + 1)
    for number, move in enumerate(change.moves, 1):
        mail, target = moved[move.former, move.id], server.shard(move.shard)
        target.last_mail = Position(milliseconds, number)
        target.mail.append(Mail(target.last_mail, mail.type, mail.entity, mail.request, mail.data))
