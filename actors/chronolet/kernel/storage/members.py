"""The part of the store through which processes share the node's shards: the members, and the handover of shards.

Input: what each process can host, requests to drain, released shards. Output: a survey, read in one round trip, and the
notes of released shards.
Next: `ownership.sharing`, which derives the assignment; `redis.members` and `memory_members`, which implement it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from chronolet.kernel.storage.layout import Layout
from chronolet_schemas.keys import Shard

HANDOVER_MILLISECONDS = 60_000
"""How long the notes of a released shard are kept for its next owner."""


class Member(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The entry of a process in the node's list of members, stored as JSON.

    `instance` differs between two processes of the same name. `refused`: shards that the process has quarantined.
    `leaving`: the process is shutting down and takes no more shards. `host`: the name of its machine, for people.
    """

    instance: str
    kinds: tuple[str, ...]
    refused: tuple[str, ...] = ()
    leaving: bool = False
    host: str = ""

    def refused_shards(self) -> frozenset[Shard]:
        """Return `refused` as shards."""
        return frozenset(map(Shard.parse, self.refused))


def encode(member: Member) -> bytes:
    """Encode a member's entry."""
    return msgspec.json.encode(member)


def decode(data: bytes) -> Member | None:
    """Decode a member's entry. Returns None if it is unreadable; its process then takes no part in sharing."""
    try:
        member = msgspec.json.decode(data, type=Member)
        member.refused_shards()
    except (msgspec.DecodeError, ValueError):
        return None
    return member


class Survey(Struct, frozen=True):
    """What a process must know to share work, read at one instant: the log's run, the renewal counter of each listed
    process, the members, the processes that were asked to drain, the current token of each shard, and the log's layout.
    """

    run: str
    counters: Mapping[str, str]
    members: Mapping[str, Member]
    drained: frozenset[str]
    tokens: Mapping[Shard, str]
    layout: Layout


class Handover(Struct, frozen=True):
    """The handover of a released shard: the token under which its last owner released it, and that owner's notes."""

    token: str
    notes: bytes


class Members(Protocol):
    """The store's calls for the members of one node and for the handover of its shards."""

    def join(self, process: str, member: Member, *, seen: Member | None, counter: str) -> bool:
        """Add `member` to the list of members under the name `process`. `seen` and `counter`: the entry and the renewal
        counter last read under this name; their process is known to be dead or to have left. Returns False if either
        has changed since: another process has joined first, or the listed one is alive. Withdraws a request to drain.
        Idempotent.
        """

    def publish(self, process: str, member: Member) -> None:
        """Replace the process's entry."""

    def survey(self, shards: Sequence[Shard]) -> Survey:
        """Read the members, and the tokens of these shards, in one round trip unless a shard's hash is unreadable.
        Such a shard counts as free: the process that tries to take it quarantines it.
        """

    def drain(self, process: str, *, drains: bool) -> None:
        """Request that a process hand over all its shards, or withdraw that request if `drains` is False."""

    def release(self, shard: Shard, token: str, notes: bytes) -> bool:
        """Release a shard, leave notes for its next owner and count a move. Returns False if `token` does not own the
        shard. Idempotent.
        """

    def handovers(self, shards: Sequence[Shard]) -> Mapping[Shard, Handover]:
        """Return the notes left for these shards within the last minute."""
