"""Bytes of a shard's folded states, for snapshots.

Comes in: the states of a shard's entities, and where each entity's last events stand. Goes out: msgpack. Next: `store`.
Large tables in a state are `immutables.Map`; msgspec reads and writes them by the hooks here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar, get_args, get_origin

import immutables
import msgspec

S = TypeVar("S")

FORMAT = 1
"""The format of this wrapping; each Kind has its own number for what is inside."""


class EntityImage(msgspec.Struct, Generic[S], frozen=True, kw_only=True):
    """One entity: its state, and the positions of its last event about each subject (causes of what follows)."""

    state: S
    positions: dict[str, str] = {}


def encode_states(entities: Mapping[str, EntityImage[Any]]) -> bytes:
    """The msgpack map of key to image."""
    return msgspec.msgpack.encode(dict(entities), enc_hook=_to_plain)


def decode_states(state: type[S], data: bytes) -> dict[str, EntityImage[S]]:
    """The images that `encode_states` wrote; msgspec.ValidationError or DecodeError if they are of another form."""
    return msgspec.msgpack.decode(data, type=dict[str, EntityImage[state]], dec_hook=_from_plain)  # type: ignore[valid-type]


def _to_plain(value: Any) -> Any:
    if isinstance(value, immutables.Map):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} cannot stand in a snapshot")


def _from_plain(expected: type, value: Any) -> Any:
    if get_origin(expected) is immutables.Map:
        return immutables.Map(msgspec.convert(value, dict[get_args(expected)], dec_hook=_from_plain))  # type: ignore[misc]
    raise NotImplementedError(f"{expected} cannot stand in a snapshot")
