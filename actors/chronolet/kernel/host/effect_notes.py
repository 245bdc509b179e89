"""Encodes and reads notes: what the effects of a released shard leave for the same effects at the shard's next owner.

Input: notes by entity, subject and intent; claims of moved shards. Output: bytes; the notes of the former owners.
Notes only help to continue smoothly: without them, effects continue as after a crash. Next: `handovers`, which stores
notes when it releases a shard; `host_starts`, which reads them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from chronolet.kernel.effects.runner import NoteKey
from chronolet.kernel.ownership.claims import Claim
from chronolet.kernel.storage.store import Store, epoch_of
from chronolet_schemas.keys import Shard

_Stored = list[tuple[str, str, str, str]]


def encode(notes: Mapping[NoteKey, str]) -> bytes:
    """Encode notes for `Store.release`."""
    return msgspec.json.encode([(*key, note) for key, note in notes.items()])


def left_for(store: Store, claims: Mapping[Shard, Claim]) -> Mapping[Shard, Mapping[NoteKey, str]]:
    """Return the notes that the former owners of these shards have left. Costs no round trip if no shard was moved."""
    moved = {shard: claim.head for shard, claim in claims.items() if _was_moved(claim)}
    if not moved:
        return {}
    found = store.handovers(list(moved))
    return {shard: _decoded(one.notes) for shard, one in found.items() if one.token == moved[shard].released}


def _was_moved(claim: Claim) -> bool:
    """Whether the shard was released by a move, and no other process owned it between the release and this claim."""
    return bool(claim.head.released) and epoch_of(claim.head.released) + 1 == epoch_of(claim.head.token)


def _decoded(stored: bytes) -> Mapping[NoteKey, str]:
    try:
        return {
            (key, subject, intent): note for key, subject, intent, note in msgspec.json.decode(stored, type=_Stored)
        }
    except msgspec.DecodeError:
        return {}
