"""The part of the store by which the processes of a node share its shards: who takes part, and graceful moves.

Input: what a process can host, requests to drain, released shards. Output: a survey of all of that in one round trip.
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
    `leaving`: it shuts down and takes no shard any more. `host`: the name of its machine, for people.
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
    """Decode a member's entry; None if it is unreadable: such a process takes no part in sharing."""
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
    """The notes of a released shard: the token under which its last owner released it, and what that one left."""

    token: str
    notes: bytes


class Members(Protocol):
    """The members of one node, and the graceful moves of its shards."""

    def join(self, process: str, member: Member, *, seen: Member | None, counter: str) -> bool:
        """Enter the list under a name. `seen` and `counter`: the entry and the renewal counter that the name had, whose
        process is known to be dead or to have left. Returns False if either has changed: another process is faster, or
        alive. Ends a request to drain. Idempotent.
        """

    def publish(self, process: str, member: Member) -> None:
        """Replace the process's entry."""

    def survey(self, shards: Sequence[Shard]) -> Survey:
        """Read the members, and the tokens of these shards, in one round trip. A shard with an unreadable hash counts
        as one without an owner: the process that tries to take it quarantines it.
        """

    def drain(self, process: str, *, drains: bool) -> None:
        """Request that a process hands over all its shards, or withdraw that request."""

    def release(self, shard: Shard, token: str, notes: bytes) -> bool:
        """Release a shard and leave notes for the next owner. Counts a move. Returns False if the token does not own
        the shard. Idempotent.
        """

    def handovers(self, shards: Sequence[Shard]) -> Mapping[Shard, Handover]:
        """Return the notes left for these shards within the last minute."""
