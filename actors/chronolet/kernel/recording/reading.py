"""Reads from the log what decisions were made from: the counterpart of `inputs`. Pure.

Input: the entries of an owner of a shard, in order, and earlier entries of the log. Output: `Decision`s: a message, a
time and the events that followed from it. Next: `chronolet.history.redeciding`, which decides again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from chronolet.kernel.decider import Due, EffectFailed
from chronolet.kernel.kind import Kind
from chronolet.kernel.recording.inputs import BY, DUE, IN, Place, base_of
from chronolet.kernel.recording.payloads import Earlier, Group, Payloads
from chronolet_schemas import codec, data_fields
from chronolet_schemas.data_fields import Parts
from chronolet_schemas.envelope import Command, Entry, Event, Message, Signal
from chronolet_schemas.times import stamp_of


class Unreadable(Exception):  # noqa: N818 - a fact about a record
    """What a decision was made from cannot be read; the text says why."""


class NotRead(Exception):  # noqa: N818 - a fact about what was read
    """What a decision was made from is partly in entries that were not read: older or missing ones."""


class Decision(NamedTuple):
    """A message that was decided, and when. `now` is in milliseconds."""

    message: Message
    now: int


class RecordedEvents(NamedTuple):
    """The events of one input, in order: at least one."""

    entries: tuple[Entry, ...]
    parts: tuple[Parts, ...]

    @property
    def place(self) -> Place:
        return _place(self.entries[0])

    @property
    def is_recorded(self) -> bool:
        """Whether the first event has the field `_in`."""
        return self.parts[0].recorded

    @property
    def process(self) -> str:
        """The process that decided, if this is its first decision about the shard; else empty."""
        value = self.parts[0].value
        return str(value.get(BY, "")) if isinstance(value, dict) else ""


class Grouping:
    """Groups a log's entries by the inputs from which they follow. All events of an input are next to each other,
    because they are part of one step.
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._parts: list[Parts] = []

    def add(self, entry: Entry) -> RecordedEvents | None:
        """Add the next entry. Returns the group before, if the entry begins another one. Raises ValueError or
        msgspec.DecodeError if the entry's data is not a map.
        """
        parts = data_fields.parts(entry.data)
        continues = bool(self._entries) and not parts.recorded and _continues(self._entries[0], entry)
        before = None if continues else self.end()
        self._entries.append(entry)
        self._parts.append(parts)
        return before

    def end(self) -> RecordedEvents | None:
        """Return the last group; None if there is none, or if it was returned before."""
        found = RecordedEvents(tuple(self._entries), tuple(self._parts)) if self._entries else None
        self._entries, self._parts = [], []
        return found


def _place(entry: Entry) -> Place:
    return Place(entry.entity, entry.cause)


def _continues(first: Entry, entry: Entry) -> bool:
    return entry.actor == first.actor and _place(entry) == _place(first)


EntriesUpTo = Callable[[str, int], Sequence[Entry]]
"""Returns the entries that a message was made from: the one at a position, or several up to it. Raises NotRead."""


class InputReader:
    """Reads the inputs of one owner of a shard, in order."""

    def __init__(self, kind: Kind[Any], entries_up_to: EntriesUpTo) -> None:
        self._kind = kind
        self._entries_up_to = entries_up_to
        self._payloads = Payloads()
        signals: frozenset[type[Signal]] = kind.signals | {EffectFailed}
        self._signals = {one.__name__: one for one in signals}

    def decision(self, events: RecordedEvents, state: Any) -> Decision:
        """Return what the events follow from. `state`: the entity's state before them. Raises Unreadable, NotRead."""
        value, cause = events.parts[0].value, events.place.cause
        try:
            if isinstance(value, dict):
                value = value[IN]
            time = _time(value[0] if isinstance(value, list) else value)
            return Decision(self._message(value, events, state), base_of(cause) + time)
        except Earlier as error:
            raise NotRead(str(error)) from error
        except (ValueError, TypeError, LookupError, zlib.error, msgspec.MsgspecError, codec.Undecodable) as error:
            at = events.entries[0].position
            raise Unreadable(f"{at}: the field {data_fields.INPUT} cannot be read: {error}") from error

    def _message(self, value: Any, events: RecordedEvents, state: Any) -> Message:
        cause = events.place.cause
        if not isinstance(value, list):
            return self._of_log(cause, 1)
        if isinstance(value[1], int):
            return self._of_log(cause, value[1])
        _, name, *content = value
        if name == DUE:
            at = content[0] if content else self._kind.decider.due(state)
            if at is None:
                raise ValueError("the state before has no timer")
            return Due(at=at)
        group = Group(events.entries[0].subject, [one.fields for one in events.parts], _joined(events.parts))
        if "@" in name:
            return codec.decode(name, self._payloads.command(name, content, group), Command)
        cls = self._signals.get(name)
        if cls is None:
            raise ValueError(f"this release does not know the signal {name!r}")
        return self._payloads.signal(cls, content, lambda: self._kind.decider.outstanding(state), group)

    def _of_log(self, cause: str, count: int) -> Message:
        entries = self._entries_up_to(cause, count)
        messages = [codec.decode(entry.type, entry.data, Event) for entry in entries]
        batch = self._kind.batches.get(type(messages[-1]))
        if batch is None:
            return messages[-1]
        return batch([(stamp_of(entry), one) for entry, one in zip(entries, messages, strict=True)])


def _time(value: Any) -> int:
    if not isinstance(value, int | None):
        raise ValueError(f"its time is {value!r}, expected a number or null")  # noqa: TRY004 - of a wrong record
    return value or 0


def _joined(parts: Sequence[Parts]) -> bytes:
    return b"".join(one.plain for one in parts)
