"""Packs the contents of signals and commands for the record, and unpacks them. Pure.

A signal mostly repeats what its events say: the id of a container, an exit code. So its content is stored without what
the events contain, as a map of fields. If that map is large, the whole content is stored instead, compressed; so is
that of a command. The dictionary is the data of the events, behind the content before of the same name, if that was
large, too: one scan of a machine resembles the next.

Which fields a map lacks is decided by these rules, in this order:

1. `intent`, if it is that of the first outstanding effect in the state before; if the signal has a subject, of the
   first one for this subject.
2. `subject`, if it is the subject of the first event.
3. A field that an event has, too, if the value in the first such event is equal.
4. A field that no event has, if it has its default value.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from chronolet.kernel.decider import Effect
from chronolet.kernel.recording import objects
from chronolet_schemas.envelope import Command, Message, Record

MOST_PLAIN_BYTES = 48
"""Largest map of fields that is stored as it is."""
LEAST_REPEATED_BYTES = 1_000
"""A content of at least this size becomes part of the dictionary of the next one with its name."""
MOST_LINKS = 20
"""After this number of contents that need the one before, one follows that does not, so that a reader who begins in the
middle soon understands all.
"""

LARGEST_BYTES = 16 * 1024 * 1024
"""A content that is larger when unpacked is refused: a log may be from a stranger, and compressed several times."""
MOST_OBJECTS = 500_000
"""A content with more values is refused, because of the memory that they take when decoded."""

_WINDOW = 32_768
"""How much of a dictionary zlib uses."""
_RAW = -15
"""zlib's window bits for a stream without head and checksum."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Group(NamedTuple):
    """The events of one input, as the log has them."""

    subject: str
    """The subject of the first event."""
    events: Sequence[Mapping[str, Any]]
    """The events' own fields, decoded."""
    dictionary: bytes
    """The events' own data, one after the other."""


def group_of(records: Sequence[Record]) -> Group:
    """Return the group of these records, which do not have the field `_in` yet."""
    datas = [record.data for record in records]
    return Group(records[0].subject, [_decode(data) for data in datas], b"".join(datas))


Outstanding = Callable[[], Sequence[Effect]]
"""Returns the effects that are outstanding in the state before."""


class Earlier(Exception):  # noqa: N818 - where the missing part is
    """A content needs one that was recorded before, and was not read."""


class _Previous(NamedTuple):
    """The last large content of a name. `links`: how many contents in a row have needed the one before."""

    full: bytes
    checksum: int
    links: int


class Payloads:
    """Packs or unpacks the contents of one shard's inputs, in the order in which they are decided."""

    def __init__(self) -> None:
        self._previous: dict[str, _Previous] = {}

    # -- packing -------------------------------------------------------------------------------------------------
    def of_signal(self, signal: Message, outstanding: Outstanding, records: Sequence[Record]) -> tuple[Any, ...]:
        """Return the items that follow a signal's name in `_in`: nothing, a map, or those of `packed`."""
        group = group_of(records)
        full = _encode(signal)
        fields = _remaining(signal, _decode(full), outstanding, group)
        if not fields:
            return ()
        if len(_encode(fields)) <= MOST_PLAIN_BYTES:
            return (fields,)
        return self.packed(type(signal).__name__, full, group.dictionary)

    def of_command(self, name: str, command: Command, records: Sequence[Record]) -> tuple[Any, ...]:
        """Return the items that follow a command's name."""
        return self.packed(name, _encode(command), group_of(records).dictionary)

    def packed(self, name: str, full: bytes, dictionary: bytes) -> tuple[Any, ...]:
        """Return the compressed content. If it needs the one before, that one's CRC-32 follows; if it is equal to it,
        only the CRC-32, after a null.
        """
        previous = self._previous.get(name)
        if previous is None or previous.links >= MOST_LINKS or len(full) < LEAST_REPEATED_BYTES:
            self._keep(name, full, 0)
            return (_deflated(full, dictionary),)
        self._keep(name, full, previous.links + 1)
        if full == previous.full:
            return (None, previous.checksum)
        return (_deflated(full, previous.full + dictionary), previous.checksum)

    # -- unpacking -----------------------------------------------------------------------------------------------
    def signal(self, cls: type[Message], content: Sequence[Any], outstanding: Outstanding, group: Group) -> Message:
        """Return the signal with this content. Raises Earlier, or ValueError, zlib.error or msgspec.MsgspecError if it
        cannot be unpacked.
        """
        if content and not isinstance(content[0], dict):
            return msgspec.msgpack.decode(self._unpacked(cls.__name__, content, group.dictionary), type=cls)
        given: dict[str, Any] = dict(content[0]) if content else {}
        fields = dict(given)
        # The subject before the intent, which is looked up by it.
        for name in sorted(cls.__struct_fields__, key=lambda one: one != "subject"):
            known, implied = _implied(name, fields, outstanding, group)
            if name not in given and known:
                fields[name] = implied
        return msgspec.convert(fields, cls)

    def command(self, name: str, content: Sequence[Any], group: Group) -> bytes:
        """Return a command as it was encoded. Raises the same exceptions as `signal`."""
        return self._unpacked(name, content, group.dictionary)

    def _unpacked(self, name: str, content: Sequence[Any], dictionary: bytes) -> bytes:
        packed, checksum = content[0], content[1] if len(content) > 1 else None
        previous = self._previous.get(name)
        if checksum is None:
            full = _inflated(packed, dictionary)
        elif previous is None or previous.checksum != checksum:
            raise Earlier(f"the content of {name} needs the one before, which was not read")
        else:
            full = previous.full if packed is None else _inflated(packed, previous.full + dictionary)
        self._keep(name, full, 0)
        return full

    def _keep(self, name: str, full: bytes, links: int) -> None:
        if len(full) >= LEAST_REPEATED_BYTES:
            self._previous[name] = _Previous(full, zlib.crc32(full), links)


# -- what the events say -----------------------------------------------------------------------------------------------
def _remaining(signal: Message, given: dict[str, Any], outstanding: Outstanding, group: Group) -> dict[str, Any]:
    found: dict[str, Any] = {}
    every = _all_fields(type(signal), given)
    for name, value in every.items():
        known, implied = _implied(name, every, outstanding, group)
        if known:
            if implied != value:
                found[name] = value
        elif name in given:
            found[name] = value
    return found


def _implied(name: str, given: Mapping[str, Any], outstanding: Outstanding, group: Group) -> tuple[bool, Any]:
    """Return whether the value of a field is known without the record, and the value."""
    if name == "intent" and (intent := _intent(given.get("subject"), outstanding)) is not None:
        return True, intent
    if name == "subject":
        return True, group.subject
    for event in group.events:
        if name in event:
            return True, event[name]
    return False, None


def _intent(subject: str | None, outstanding: Outstanding) -> str | None:
    return next((one.intent for one in outstanding() if subject in (None, one.subject)), None)


def _all_fields(cls: type[Message], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all fields as plain data; `given` lacks those with their default value."""
    defaults = _DEFAULTS.get(cls)
    if defaults is None:
        values = {one.encode_name: _default(one) for one in msgspec.structs.fields(cls) if not one.required}
        defaults = _DEFAULTS[cls] = _decode(_encode(values))
    return {**defaults, **given}


_DEFAULTS: dict[type[Message], dict[str, Any]] = {}
"""The default values of each class's fields as plain data; they are never changed."""


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def _deflated(data: bytes, dictionary: bytes) -> bytes:
    packer = zlib.compressobj(wbits=_RAW, zdict=dictionary[-_WINDOW:])
    return packer.compress(data) + packer.flush()


def _inflated(data: Any, dictionary: bytes) -> bytes:
    if not isinstance(data, bytes):
        raise ValueError(f"its content is {data!r:.40}, expected a map or bytes")  # noqa: TRY004 - of a wrong record
    unpacker = zlib.decompressobj(wbits=_RAW, zdict=dictionary[-_WINDOW:])
    found = unpacker.decompress(data, LARGEST_BYTES + 1)
    if len(found) > LARGEST_BYTES:
        raise ValueError(f"the content of {len(data)} bytes has more than {LARGEST_BYTES} when unpacked")
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError(f"the compressed content of {len(data)} bytes is incomplete or has other bytes behind it")
    objects.check(found, MOST_OBJECTS)
    return found
