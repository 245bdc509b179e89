"""Encodes and decodes snapshots: the folded states of a shard's entities.

Input: the state of each entity, and the positions of its last events. Output: msgpack. Next: `store`. Large tables in a
state have the type `immutables.Map`; the hooks in this module let msgspec encode and decode them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin

import msgspec

S = TypeVar("S")


class EntityImage(msgspec.Struct, Generic[S], frozen=True, kw_only=True):
    """One entity in a snapshot: its state, and the position of its last event about each subject. The positions become
    causes of effects.
    """

    state: S
    positions: dict[str, str] = {}


LAYOUT_STEP = 10_000
"""Larger than any kind's format number."""


class Snapshotted(Protocol):
    """The part of a `Kind` that determines the format of its snapshots."""

    @property
    def format(self) -> int: ...

    @property
    def shards(self) -> int: ...


def snapshot_format(kind: Snapshotted, shards: int) -> int:
    """Return the format number of a snapshot of one of `shards` shards.

    A snapshot of another layout has another number, so a reader that expects other entities in it ignores it. With the
    kind's usual number of shards it is the kind's own format, which former releases can read.
    """
    return kind.format if shards == kind.shards else kind.format + LAYOUT_STEP * shards


def encode_states(entities: Mapping[str, EntityImage[Any]]) -> bytes:
    """Encode a map of entity key to image as msgpack."""
    return msgspec.msgpack.encode(dict(entities), enc_hook=_to_plain)


def decode_states(state: type[S], data: bytes, keys: Collection[str] | None = None) -> dict[str, EntityImage[S]]:
    """Decode the output of `encode_states`. With `keys`, only the entities with these keys are decoded.

    Raises msgspec.ValidationError or DecodeError if `data` is invalid.
    """
    if keys is None:
        return msgspec.msgpack.decode(data, type=dict[str, EntityImage[state]], dec_hook=_from_plain)  # type: ignore[valid-type]
    decoder: msgspec.msgpack.Decoder[EntityImage[S]]
    decoder = msgspec.msgpack.Decoder(EntityImage[state], dec_hook=_from_plain)  # type: ignore[valid-type]
    images = msgspec.msgpack.decode(data, type=dict[str, msgspec.Raw])
    return {key: decoder.decode(image) for key, image in images.items() if key in keys}


def _to_plain(value: Any) -> Any:
    import immutables  # noqa: PLC0415 - a command that reads pods needs no maps

    if isinstance(value, immutables.Map):
        return dict(value)
    raise NotImplementedError(f"snapshots cannot hold a {type(value).__name__}")


def _from_plain(expected: type, value: Any) -> Any:
    import immutables  # noqa: PLC0415 - see above

    if get_origin(expected) is immutables.Map:
        return immutables.Map(msgspec.convert(value, dict[get_args(expected)], dec_hook=_from_plain))  # type: ignore[misc]
    raise NotImplementedError(f"snapshots cannot hold a {expected}")
