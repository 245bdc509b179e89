"""Encodes and decodes messages as plain msgpack, with msgspec.

Input: a registered Struct, or a type name with bytes. Output: bytes, or a Struct. Raises `Undecodable` with the reason
for anything that this release cannot read: the kernel quarantines it, the CLI shows it untyped. Next: the kernel's
store, `history`, `cli`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from chronolet_schemas import registry, upcasting
from chronolet_schemas.envelope import Command, Event

_M = TypeVar("_M", bound=Event | Command)

_encoder = msgspec.msgpack.Encoder()
_readers: dict[type, dict[str, Callable[[bytes], Any]]] = defaultdict(dict)
"""Decoders by base class and type name; each type here is known to be a subclass of that base."""


class Undecodable(Exception):  # noqa: N818 - a fact about an entry
    """A log entry or mailbox message that this release cannot decode: its type is unknown, its version is newer, or its
    bytes do not match its type.
    """


def encode(message: Event | Command) -> bytes:
    """Encode a message as the msgpack map of its own fields."""
    return _encoder.encode(message)


def split_type(type_name: str) -> tuple[str, int]:
    """Split `pod.ContainerStarted@1` into (`pod.ContainerStarted`, 1). Raises Undecodable for any other form."""
    name, _, version = type_name.partition("@")
    if not version.isdecimal():
        raise Undecodable(f"type {type_name!r}: expected <kind>.<Name>@<version>")
    return name, int(version)


def is_known(type_name: str) -> bool:
    """Return whether this release knows the type, in this version."""
    try:
        name, version = split_type(type_name)
    except Undecodable:
        return False
    cls = registry.class_of(name)
    return cls is not None and 1 <= version <= cls.VERSION


def decode(type_name: str, data: bytes, base: type[_M]) -> _M:
    """Decode `data` and upcast it to the newest version. `base` is Event or Command. Raises Undecodable."""
    read = _readers[base].get(type_name)
    try:
        if read is not None:  # the common case; determines how fast a log is folded
            return read(data)  # type: ignore[no-any-return]
        message = _decode_slowly(type_name, data, base)
    except (ValueError, KeyError, RecursionError) as error:  # a text that is not UTF-8 is a ValueError
        raise Undecodable(f"{type_name}: {error}") from error
    if not isinstance(message, base):
        raise Undecodable(f"{type_name}: expected a subclass of {base.__name__}")
    return message


def _decode_slowly(type_name: str, data: bytes, base: type) -> Any:
    name, version = split_type(type_name)
    cls = registry.class_of(name)
    if cls is None:
        raise Undecodable(f"{type_name}: this release does not know the type")
    if version > cls.VERSION:
        raise Undecodable(f"{type_name}: this release knows the type up to version {cls.VERSION}")
    if version == cls.VERSION:
        read = msgspec.msgpack.Decoder(cls).decode
        if issubclass(cls, base):
            _readers[base][type_name] = read
        return read(data)
    return msgspec.convert(upcasting.upcast(name, version, cls.VERSION, msgspec.msgpack.decode(data)), cls)
