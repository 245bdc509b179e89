"""Takes secrets out of entries, also out of what their decisions were made from, which the log has in compressed form.

Input: entries in their order, a `Redactor`. Output: the same entries without secrets. A content is unpacked, redacted
and packed again, with the redacted events as its dictionary. One that cannot be unpacked, because the content before it
is missing, is left out: a reader takes it for one that needs a content which was not read. Pure. Next:
`cli.bundle.save`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from chronolet.history.bundle.redaction.redactor import Redactor
from chronolet.kernel.recording.inputs import BY, DUE, IN
from chronolet.kernel.recording.payloads import Earlier, Group, Payloads
from chronolet.kernel.recording.reading import Grouping, RecordedEvents
from chronolet_schemas import data_fields
from chronolet_schemas.envelope import Entry

_NOT_READ = (None, 0)
"""The items of a content that is equal to the one before, which nobody has: no content has this CRC-32 but one in four
billion.
"""
_CONTENT = 2
"""The index in `_in` of what follows the message's name."""


def redacted(entries: Iterable[Entry], redactor: Redactor) -> Iterator[Entry]:
    """Yield the entries without secrets."""
    grouping, inputs = Grouping(), _Inputs(redactor)
    for entry in entries:
        try:
            group = grouping.add(entry)
        except (ValueError, msgspec.DecodeError, RecursionError):
            yield from inputs.redacted(grouping.end())
            yield redactor.entry(entry)._replace(data=redactor.data(entry.data))
        else:
            yield from inputs.redacted(group)
    yield from inputs.redacted(grouping.end())


class _Owner(NamedTuple):
    """The owner of a shard, and the contents before and after the redaction."""

    actor: str
    before: Payloads
    after: Payloads


class _Inputs:
    """Redacts the inputs of all shards."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._owners: dict[str, _Owner] = {}

    def redacted(self, group: RecordedEvents | None) -> Iterator[Entry]:
        """Yield the entries of one input."""
        if group is None:
            return
        plain = [self._redactor.data(part.plain) for part in group.parts]
        for entry, part, data in zip(group.entries, group.parts, plain, strict=True):
            if part.recorded:
                # One that is nested too deeply was not written by chronolet, and is left out.
                with suppress(RecursionError):
                    data = data_fields.with_input(data, self._value(part.value, group, b"".join(plain)))  # noqa: PLW2901
            time = entry.data[-data_fields.TIME_LENGTH :]
            timed = time.startswith(data_fields.TIME_MARK) and len(time) == data_fields.TIME_LENGTH
            named = self._redactor.entry(entry)
            yield named._replace(data=data_fields.appended(data, time) if timed else data)

    def _value(self, value: Any, group: RecordedEvents, dictionary: bytes) -> Any:
        # An owner's first decision also says which process that is.
        if isinstance(value, dict) and value.keys() <= {BY, IN}:
            return {key: self._value(held, group, dictionary) for key, held in value.items()}
        is_packed = isinstance(value, list) and len(value) > _CONTENT and value[1] != DUE
        if not is_packed or isinstance(value[_CONTENT], dict):
            return self._redactor.plain(value)
        time, name, *content = value
        if not isinstance(time, int | None) or not isinstance(name, str):  # which chronolet does not write
            return self._redactor.plain(value)
        return [time, self._redactor.name(name), *self._content(name, content, group, dictionary)]

    def _content(self, name: str, content: list[Any], group: RecordedEvents, dictionary: bytes) -> tuple[Any, ...]:
        owner = self._owner(group.entries[0].actor)
        fields = [part.fields for part in group.parts]
        packed_with = Group(group.entries[0].subject, fields, b"".join(part.plain for part in group.parts))
        try:
            full = msgspec.msgpack.decode(owner.before.command(name, content, packed_with))
        except (Earlier, ValueError, TypeError, zlib.error, msgspec.MsgspecError, RecursionError):
            return _NOT_READ
        return owner.after.packed(name, msgspec.msgpack.encode(self._redactor.plain(full)), dictionary)

    def _owner(self, actor: str) -> _Owner:
        shard = actor.partition("#")[0]
        owner = self._owners.get(shard)
        if owner is None or owner.actor != actor:
            owner = self._owners[shard] = _Owner(actor, Payloads(), Payloads())
        return owner
