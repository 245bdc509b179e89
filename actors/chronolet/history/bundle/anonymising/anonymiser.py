"""Replaces names in events and states consistently, so that they fold as before and all relations hold.

Input: the plain data of events and states of a bundle, the names in them, a random key. Output: the same with each
name replaced by `pod-1`, `namespace-1` and so on, addresses by others, and hexadecimal ids by others of the same
length. Pure. Next: `format`.

There is one table for all texts: equal names become equal names, wherever they occur, also within composed names
(`ns/pod`, names of containers in Docker, paths) and sentences. Different names become different names. The words of
`vocabulary` stay.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from chronolet.history.bundle.anonymising.names import HEX, SHORT, TAGGED, Names, decoded
from chronolet.history.bundle.redaction.rules import bytes_left_out
from chronolet_schemas import data_fields, times
from chronolet_schemas.envelope import START, Entry

_TOKEN = re.compile(r"[A-Za-z0-9\[](?:[A-Za-z0-9._/@:+=\[\]-]*[A-Za-z0-9\]])?")
_BRACKETED = re.compile(r"\[([0-9A-Fa-f:.]+)\]")
_WORD = re.compile(r"[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*")
_SPLIT = re.compile(r"([._])")
_KEPT_ADDRESSES = frozenset({"0.0.0.0", "127.0.0.1", "::", "::1", "255.255.255.255"})  # noqa: S104 - data


class Anonymiser:
    """Replaces names in texts, data and entries. `key`: random bytes, not to be kept with the result."""

    def __init__(self, names: Names, vocabulary: frozenset[str], key: bytes) -> None:
        self._aliases = dict(names.aliases())
        self._images = dict(names.images())
        self._short = names.short
        self._vocabulary = vocabulary
        self._key = key
        self._addresses: dict[str, str] = {}
        self._tags: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._longest = _longest((*self._aliases, *vocabulary))
        """The largest number of pieces of a name: longer parts of a word are no names."""

    def entry(self, entry: Entry, *, readable: bool) -> Entry:
        """Return the entry without names. If this release cannot read it (`readable`), its data is left out, because
        nobody knows what the texts in it mean.
        """
        kind, slash, key = entry.entity.partition("/")
        actor, mark, epoch = entry.actor.partition("#")
        return entry._replace(
            entity=f"{kind}{slash}{self.text(key)}",
            subject=self.text(entry.subject),
            actor=f"{self.text(actor)}{mark}{epoch}",
            cause=self.text(entry.cause),
            data=self.data(entry.data) if readable else _time_only(entry.data),
        )

    def data(self, data: bytes) -> bytes:
        """Return the data of an event without names, and without what it was decided from: most of that is packed, and
        decisions from other names would not be the same.
        """
        plain = decoded(data)
        if not plain:
            return data if data == b"" else msgspec.msgpack.encode({})
        # Always encoded anew: of fields with one name, only the last is decoded, but `data` has all values.
        named = {name: value for name, value in plain.items() if name != data_fields.INPUT}
        return msgspec.msgpack.encode(self.plain(named))

    def plain(self, value: Any) -> Any:
        """Return plain data without names."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.plain(name): self.plain(held) for name, held in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(item) for item in value]
        return bytes_left_out(value) if isinstance(value, bytes | msgspec.msgpack.Ext) else value

    def text(self, text: str) -> str:
        """Return a text without names."""
        if text in self._vocabulary:
            return text
        known = self._known.get(text) or self._aliases.get(text)
        if known is None:
            known = HEX.sub(lambda found: self._id(found[0]), _TOKEN.sub(lambda found: self._token(found[0]), text))
            if len(self._known) < _MOST_REMEMBERED:
                self._known[text] = known
        return known

    def _token(self, token: str) -> str:
        """Replace an image, an address, or each word in a text without spaces."""
        if token in self._vocabulary:
            return token
        image = self._image(token)
        if image is not None:
            return image
        address = self._address(token) if ":" in token else None
        if address is not None:
            return address
        token = _BRACKETED.sub(lambda found: f"[{self._address(found[1]) or found[1]}]", token)
        return _WORD.sub(lambda found: self._word(found[0]), token)

    def _image(self, token: str) -> str | None:
        found = TAGGED.fullmatch(token)
        alias = self._images.get(found["repository"]) if found is not None else None
        if found is None or alias is None:
            return None
        tag, digest = found["tag"], found["digest"]
        tagged = f":{self._tag(tag)}" if tag else ""
        return f"{alias}{tagged}{f'@{digest}' if digest else ''}"

    def _tag(self, tag: str) -> str:
        return tag if tag in self._vocabulary else self._tags.setdefault(tag, f"tag{len(self._tags) + 1}")

    def _word(self, word: str) -> str:
        """Replace a word: as a whole, as an address, or the longest parts between `.` and `_` that are names."""
        whole = self._one(word)
        if whole is not None:
            return whole
        pieces = _SPLIT.split(word)
        done: list[str] = []
        at = 0
        while at < len(pieces):
            end = min(len(pieces), at + self._longest)
            while end > at and (found := self._one("".join(pieces[at:end]))) is None:
                end -= 2 if end - at > 1 else 1
            if end > at:
                done.append(found or "")
                at = end
            else:
                done.append(pieces[at])
                at += 1
            if at < len(pieces):
                done.append(pieces[at])
                at += 1
        return "".join(done)

    def _one(self, word: str) -> str | None:
        """Return the replacement of a name or an address; None if it is neither."""
        if word in self._vocabulary:
            return word
        alias = self._aliases.get(word)
        return self._address(word) if alias is None else alias

    def _address(self, text: str) -> str | None:
        """Return the replacement of an IP address; None if the text is none."""
        if text in _KEPT_ADDRESSES:
            return text
        if text.count(".") != _DOTS and text.count(":") < _COLONS:
            return None
        known = self._addresses.get(text)
        if known is None:
            try:
                version = ipaddress.ip_address(text).version
            except ValueError:
                return None
            number = len(self._addresses) + 1
            of = ipaddress.IPv4Address if version == _IPV4 else ipaddress.IPv6Address
            begin = int(ipaddress.ip_address("10.0.0.0" if version == _IPV4 else "fd00::"))
            known = self._addresses[text] = str(of(begin + number))
        return known

    def _id(self, digits: str) -> str:
        """Replace a hexadecimal id; its first twelve digits are replaced by what replaces them alone."""
        if len(digits) == SHORT:
            return self._digest(digits) if digits in self._short else digits
        return self._digest(digits[:SHORT]) + self._digest(digits)[: len(digits) - SHORT]

    def _digest(self, digits: str) -> str:
        length = SHORT if len(digits) == SHORT else 64
        return hashlib.blake2b(digits.encode(), key=self._key).hexdigest()[:length]


_MOST_PIECES = 63
"""Of a name of 32 words. The time to replace a word grows with the square of it."""
_MOST_REMEMBERED = 500_000
_DOTS = 3
_COLONS = 2
_IPV4 = 4


def _longest(names: Iterable[str]) -> int:
    """Return the largest number of pieces of a name. Names of more pieces are only replaced where they are alone."""
    return min(max((len(_SPLIT.split(name)) for name in names), default=1), _MOST_PIECES)


def _time_only(data: bytes) -> bytes:
    """Return the data of an event without its fields, but with the time that it may name."""
    at, empty = times.time_at(START, data), msgspec.msgpack.encode({})
    return times.with_time(empty, at) if at else empty
