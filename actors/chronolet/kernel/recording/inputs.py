"""Describes what a decision was made from, so that it can be made again from the log. Pure.

Input: a message, the state before it, the events that follow from it. Output: the value of the field `_in` of the first
of these events; none if the log shows everything anyway. Next: `ledger`, which writes it; `reading`, which reads it.

The time of the decision is stored relative to the time in `cause`. These are the forms of the value:

    none                     the entry of the log at `cause`, and a decision that does not depend on the time
    TIME                     the entry of the log at `cause`
    [TIME, COUNT]            the last COUNT entries up to `cause`, combined into one message
    [TIME, "Due"]            the timer of the state before; a third item is its time if that is another one
    [TIME, NAME]             a signal, or a command if NAME contains `@`; further items are its content (`payloads`)

TIME is null if the decision does not depend on the time. Only the form NAME with its content is large; the others cost
a few bytes each. An owner's first decision has {"by": PROCESS, "in": one of these forms or null}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from chronolet.kernel.decider import Due
from chronolet.kernel.kind import Kind
from chronolet.kernel.recording.payloads import Outstanding, Payloads
from chronolet.kernel.step.input import Input
from chronolet_schemas import data_fields, registry
from chronolet_schemas.envelope import Command, Position, Record

DUE = "Due"


def base_of(cause: str) -> int:
    """Return the milliseconds to which the time of a decision with this cause is relative; 0 if it is no position."""
    try:
        return Position.parse(cause).milliseconds
    except ValueError:
        return 0


class Place(NamedTuple):
    """What the events of one input have in common. The next input of a shard is recognised by another place, unless it
    has the field.
    """

    entity: str
    cause: str


BY, IN = "by", "in"
"""The names in the value of an owner's first decision."""


class InputRecorder:
    """Records the inputs of one shard, in the order in which they are decided."""

    def __init__(self, kind: Kind[Any], process: str) -> None:
        """`process`: the process that owns the shard."""
        self._kind = kind
        self._payloads = Payloads()
        self._process: str | None = process
        """The process, until it is recorded."""
        self._last: Place | None = None
        """Where the previous event was recorded."""

    def recorded(
        self, item: Input, due: int | None, outstanding: Outstanding, now: int, records: Sequence[Record]
    ) -> Record:
        """Return the first of `records`, the events that follow from `item`, with the field `_in` in its data. `due`,
        `outstanding`: the timer (only needed for a `Due`) and the effects of the entity's state before them.
        """
        first = records[0]
        place, before = Place(first.entity, first.cause), self._last
        self._last = place
        time = None if type(item.message) in self._kind.timeless else now - base_of(first.cause)
        value = self._value(item, due, outstanding, time, records)
        if self._process is not None:
            value, self._process = {BY: self._process, IN: value}, None
        elif value is None and place != before:
            return first
        return first._replace(data=data_fields.with_input(first.data, value))

    def note(self, record: Record) -> None:
        """Take note of an event of the kernel's own, which belongs to no input."""
        self._last = Place(record.entity, record.cause)

    def _value(
        self, item: Input, due: int | None, outstanding: Outstanding, time: int | None, records: Sequence[Record]
    ) -> Any:
        message = item.message
        if item.source == "log" or message is None:
            return time if item.entries == 1 else [time, item.entries]
        if isinstance(message, Due):
            return [time, DUE] if message.at == due else [time, DUE, message.at]
        if isinstance(message, Command):
            name = registry.type_of(type(message))
            return [time, name, *self._payloads.of_command(name, message, records)]
        return [time, type(message).__name__, *self._payloads.of_signal(message, outstanding, records)]
