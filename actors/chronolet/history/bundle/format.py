"""The format of a bundle: its first line, its manifest and its trailer. `parts` has what is between them.

A file is, one after the other: the line `chronolet bundle 1`; the parts, each one zlib stream; the manifest, a JSON
object; a trailer of 83 bytes with the manifest's length and its SHA-256. The manifest lists the parts in their order
with their sizes and SHA-256, so every byte of a file is accounted for. docs/bundles.md specifies all of it.

Input: a manifest, or bytes of an untrusted file. Output: bytes, or a manifest; `Unreadable` for anything else. Pure.
Next: `writer`, `reader`.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any

import msgspec

from chronolet.history.bundle.parts import LATEST, MOST_ENTRIES, Part, Unreadable, What
from chronolet_schemas.envelope import Position

VERSION = 1
"""Incremented when an older reader would misread a file. Fields and parts of other sorts may be added without that."""
_NAME = b"chronolet bundle "
MAGIC = _NAME + b"%d\n" % VERSION
_MAGIC = re.compile(rb"chronolet bundle ([0-9]{1,9})\n")
MAGIC_LIMIT = len(_NAME) + 10
TRAILER_BYTES = 83
_TRAILER = re.compile(rb"\n([0-9a-f]{16}) ([0-9a-f]{64})\n")

LARGEST_MANIFEST = 4 * 1024 * 1024
"""Empty lists and maps in it take thirty times as much memory."""


Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=LATEST)]
"""A time since the epoch."""


class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """How secrets were taken out. `values`: the number of different ones that were known and searched for."""

    rules: int
    kept: tuple[str, ...] = ()
    values: int = 0


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """An event that describes the node: a version, an engine, settings. The newest of its kind up to the window's end.
    It may be from before the window's beginning.
    """

    position: str
    at: Milliseconds
    """When it was written, in milliseconds since the epoch."""
    type: str
    entity: str
    data: dict[str, Any]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle has. Times are in milliseconds since the epoch."""

    node: Annotated[str, msgspec.Meta(min_length=1)]
    run: str
    created_at: Milliseconds
    created_by: str
    """The version of chronolet that wrote the file."""
    begins: str
    """The position of the last entry before the window, which the states include; `0-0` if it begins with the log."""
    begins_at: Milliseconds
    """The time from which the bundle has everything."""
    ends: str
    """The position of the last entry."""
    ends_at: Milliseconds
    """The moment that commands take for the present."""
    count: int
    redaction: Redaction
    anonymised: bool = False
    facts: tuple[Fact, ...] = ()
    parts: tuple[Part, ...] = ()

    def of(self, what: What) -> tuple[Part, ...]:
        """Return the parts of this sort, in their order."""
        return tuple(part for part in self.parts if part.what == what)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the manifest and the trailer, which end a file."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    return text + b"\n%016x %s\n" % (len(text), hashlib.sha256(text).hexdigest().encode())


def check_magic(begin: bytes) -> None:
    """Check the first `MAGIC_LIMIT` bytes of a file. Raises Unreadable, which says what the file seems to be."""
    found = _MAGIC.match(begin)
    if found is None:
        raise Unreadable(f"not a bundle: it begins with {begin[:20]!r}, expected {MAGIC!r}{_encrypted(begin)}")
    if int(found[1]) > VERSION:
        raise Unreadable(
            f"written by a newer version of chronolet: format {int(found[1])}, this release reads up to {VERSION}; "
            "open it with the version that wrote it, or a newer one"
        )
    if int(found[1]) < 1:
        raise Unreadable(f"found format {int(found[1])}, expected {VERSION}")


def _encrypted(begin: bytes) -> str:
    if begin.startswith((b"age-encryption.org/", b"-----BEGIN AGE")):
        return "; it is encrypted with age: decrypt it with `age --decrypt -i KEY FILE`"
    if begin.startswith(b"-----BEGIN PGP MESSA") or (begin[:1] in (b"\x84", b"\x85", b"\xc1") and begin):
        return "; it may be encrypted with gpg: decrypt it with `gpg --decrypt FILE`"
    return ""


def manifest_size(trailer: bytes) -> tuple[int, str]:
    """Return the size and the SHA-256 of the manifest, from the last `TRAILER_BYTES`. Raises Unreadable."""
    found = _TRAILER.fullmatch(trailer)
    if found is None:
        raise Unreadable("truncated or altered: it does not end with a bundle's trailer; copy or save it again")
    size = int(found[1], 16)
    if size > LARGEST_MANIFEST:
        raise Unreadable(f"its manifest has {size} bytes, expected at most {LARGEST_MANIFEST}")
    return size, found[2].decode()


def decode_end(text: bytes, room: int) -> Manifest:
    """Decode what `encode_manifest` returned. Raises Unreadable if a reader would refuse it."""
    size, sha256 = manifest_size(text[-TRAILER_BYTES:])
    return decode_manifest(text[:size], sha256, room)


def decode_manifest(text: bytes, sha256: str, room: int) -> Manifest:
    """Decode the manifest of a file with `room` bytes for parts. Raises Unreadable if it is not consistent."""
    if hashlib.sha256(text).hexdigest() != sha256:
        raise Unreadable("altered: the manifest does not have the SHA-256 in the trailer")
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
        begins, ends = Position.parse(manifest.begins), Position.parse(manifest.ends)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Unreadable(f"its manifest is invalid: {error}") from error
    if sum(part.size_bytes for part in manifest.parts) != room or any(part.size_bytes < 0 for part in manifest.parts):
        raise Unreadable("altered: its parts do not have the sizes in its manifest")
    _check_order(manifest, begins, ends)
    return manifest


def _check_order(manifest: Manifest, begins: Position, ends: Position) -> None:
    last, count = begins, 0
    for part in manifest.of("log"):
        try:
            first, end = Position.parse(part.first), Position.parse(part.last)
        except ValueError as error:
            raise Unreadable(f"its manifest is invalid: {error}") from error
        if not (last <= first <= end) or end.milliseconds > LATEST or not 0 < part.count <= MOST_ENTRIES:
            raise Unreadable(f"its manifest is invalid: {part.count} entries from {first} to {end} follow {last}")
        last, count = end, count + part.count
    if (last, count) != (ends, manifest.count) or not count:
        raise Unreadable(
            f"its manifest is invalid: found {count} entries up to {last}, expected {manifest.count} up to {ends}"
        )
