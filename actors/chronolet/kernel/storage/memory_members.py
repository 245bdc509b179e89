"""The members of a node on a `MemoryServer`.

Input: the calls of the `Members` Protocol. Output: their results. Next: `memory_store`, whose `MemoryStore` inherits
`MemoryMembers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chronolet.kernel.storage.layout import Layout
from chronolet.kernel.storage.members import HANDOVER_MILLISECONDS, Handover, Member, Survey
from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet_schemas.keys import Shard


class MemoryMembers:
    """Implements `Members` in memory."""

    _server: MemoryServer

    def join(self, process: str, member: Member, *, seen: Member | None, counter: str) -> bool:
        server = self._server
        with server.changed:
            current = server.members.get(process)
            if current == member:
                return True
            now = str(server.renewals[process]) if process in server.renewals else ""
            if current != seen or now != counter:
                return False
            server.members[process] = member
            server.renewals.pop(process, None)
            server.drained.discard(process)
            server.change_members()
            return True

    def publish(self, process: str, member: Member) -> None:
        with self._server.changed:
            self._server.members[process] = member
            self._server.change_members()

    def survey(self, shards: Sequence[Shard]) -> Survey:
        server = self._server
        with server.changed:
            return Survey(
                run=server.run,
                counters={process: str(number) for process, number in server.renewals.items()},
                members=dict(server.members),
                drained=frozenset(server.drained),
                tokens={shard: server.shard(shard).head.token for shard in shards},
                layout=Layout(server.run, dict(server.counts), dict(server.requested), dict(server.refused)),
            )

    def drain(self, process: str, *, drains: bool) -> None:
        with self._server.changed:
            (self._server.drained.add if drains else self._server.drained.discard)(process)
            self._server.change_members()

    def release(self, shard: Shard, token: str, notes: bytes) -> bool:
        server = self._server
        with server.changed:
            head = server.shard(shard).head
            if head.token != token:
                return bool(token) and head.released == token
            server.update(shard, token="", released=token, unowned_since=server.clock(), moves=head.moves + 1)
            server.handovers[shard] = (Handover(token, notes), server.clock() + HANDOVER_MILLISECONDS)
            server.change_members()
            return True

    def handovers(self, shards: Sequence[Shard]) -> Mapping[Shard, Handover]:
        server = self._server
        with server.changed:
            found = {shard: server.handovers[shard] for shard in shards if shard in server.handovers}
            return {shard: handover for shard, (handover, until) in found.items() if until > server.clock()}
