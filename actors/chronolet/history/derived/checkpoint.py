"""Checkpoints: the states of all entities at a position of the log, from which a reader of a later moment begins.

Input: states, or the content of a checkpoint file. Output: the other. A checkpoint file is a sealed file (`sealed`):
the line `chronolet checkpoint 1`, a `Summary`, and a msgpack map `Body`, with a zlib stream of each kind's states in
the format of snapshots (`kernel.step.snapshots`). A kind's states count only for the code that has folded them
(`code`). Next: `upkeep`, which writes checkpoints, and `history.state`, which begins with one.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from chronolet.history.derived import sealed
from chronolet.history.derived.sealed import Unusable
from chronolet.kernel.step.snapshots import EntityImage, decode_states, encode_states
from chronolet_schemas import registry
from chronolet_schemas.envelope import Position

KINDS = tuple(sorted(registry.KINDS - {"kernel", "kube_events"}))
"""The kinds of a node whose states are in checkpoints. That of `kube_events`, its caches, would be nine tenths of a
checkpoint, and no question about the past needs it: the events themselves are in the log.
"""
FORMAT = 1
SUFFIX = ".checkpoint"
_LINE = b"chronolet checkpoint 1\n"


class Version(Struct, frozen=True):
    """What the states of a kind depend on, besides the log."""

    format: int
    """The number of the kind's snapshot format."""
    code: str
    """The digest of the code that has folded them."""


class Summary(Struct, frozen=True):
    """What a reader needs to know of a checkpoint before it reads the states."""

    format: int
    node: str
    run: str
    position: tuple[int, int]
    file: str
    """The name of the archive file that has this position."""
    kinds: dict[str, Version]


class Unreadable(Struct, frozen=True, array_like=True):
    """An entry that this release cannot decode: the states are without it."""

    key: str
    """The key of its entity."""
    position: tuple[int, int]


class Body(Struct, frozen=True):
    """The body of a checkpoint file, by kind."""

    states: dict[str, bytes]
    unreadable: dict[str, tuple[Unreadable, ...]]


class Checkpoint(Struct, frozen=True):
    """A checkpoint that was read."""

    summary: Summary
    states: dict[str, bytes]
    unreadable: dict[str, tuple[Unreadable, ...]]

    @property
    def position(self) -> Position:
        """The position of the last entry that the states include."""
        return Position(*self.summary.position)

    def check(self) -> None:
        """Raise Unusable if the states of a kind are missing or damaged."""
        for kind in self.summary.kinds:
            sealed.unpacked(self._encoded(kind), dict[str, msgspec.Raw], f"unreadable states of {kind}")

    def states_of(self, kind: str, state: type[Any], keys: Collection[str] | None = None) -> dict[str, Any]:
        """Return the states of a kind's entities, or only those with these keys. Raises Unusable."""
        try:
            images = decode_states(state, self._encoded(kind), keys)
        # Any program may have written it: values may be of other types, or nested too deeply.
        except (ValueError, TypeError, RecursionError, MemoryError, OverflowError) as error:
            raise Unusable(f"has unreadable states of {kind}: {error or type(error).__name__}") from error
        return {key: image.state for key, image in images.items()}

    def _encoded(self, kind: str) -> bytes:
        if kind not in self.states:
            raise Unusable(f"has no states of {kind}")
        return sealed.decompressed(self.states[kind], f"unreadable states of {kind}")


def name_of(position: Position) -> str:
    """Return the name of the checkpoint at a position."""
    return f"{position}{SUFFIX}"


def position_of(name: str) -> Position | None:
    """Return the position of the checkpoint with this name; None if it is another file's name."""
    if not name.endswith(SUFFIX):
        return None
    try:
        return Position.parse(name.removesuffix(SUFFIX))
    except ValueError:
        return None


def encode(
    summary: Summary,
    states: Mapping[str, Mapping[str, Any]],
    unreadable: Mapping[str, Sequence[Unreadable]] | None = None,
) -> bytes:
    """Return the content of a checkpoint file. `states`: by kind and key."""
    encoded = {
        kind: zlib.compress(encode_states({key: EntityImage(state=state) for key, state in found.items()}))
        for kind, found in states.items()
    }
    body = Body(encoded, {kind: tuple(found) for kind, found in (unreadable or {}).items() if found})
    return sealed.sealed(_LINE, summary, msgspec.msgpack.encode(body))


def decode(content: bytes) -> Checkpoint:
    """Decode a checkpoint file. Raises Unusable."""
    summary, begin = sealed.opened(_LINE, content, Summary)
    body = sealed.unpacked(content[begin:], Body, "unreadable states")
    return Checkpoint(summary, body.states, body.unreadable)


def decode_summary(start: bytes) -> Summary:
    """Decode the summary from the first `sealed.SUMMARY_BYTES` of a checkpoint file. Raises Unusable."""
    return sealed.opened(_LINE, start, Summary)[0]
