"""Base classes of all messages: events in the log, commands in mailboxes, and the entry that wraps an event.

Input: none. Output: the base classes that the schema modules build on, and `Entry`, one line of the log. Next:
`registry` (the class of a type name) and `codec` (bytes).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base class of everything that a decider receives or returns, and of the values in it. Values are text, booleans,
    integers below 2^53, floats, lists, maps.
    """


class Event(Message, frozen=True, kw_only=True, omit_defaults=True):
    """A fact in the node's log, in the past tense. Published classes never change (see `upcasting`)."""

    VERSION: ClassVar[int] = 1

    def subject(self) -> str:
        """Return the part of the entity that the event is about, such as `container/app`; empty for the entity as a
        whole.
        """
        return ""


class Command(Message, frozen=True, kw_only=True, omit_defaults=True):
    """A request from outside. Every command yields at least one event whose cause is `request`."""

    VERSION: ClassVar[int] = 1

    request: str


class Signal(Message, frozen=True, kw_only=True, omit_defaults=True):
    """An in-memory message to a host: effect result, notice, relist, timer. It need not be stored, because it can
    always be requested again.
    """


class Position(NamedTuple):
    """A log entry's id `<milliseconds>-<n>`; `n` counts the node's events without a gap."""

    milliseconds: int
    n: int

    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.n}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse the text of `str(position)`. Raises ValueError for anything else."""
        milliseconds, _, n = text.partition("-")
        return cls(int(milliseconds), int(n))


START = Position(0, 0)

FIELDS = ("type", "entity", "subject", "actor", "cause", "data")
"""The fields of a log entry, in their order in every entry."""


class Record(NamedTuple):
    """An event to be appended to the log: the fields of an entry except its position."""

    type: str
    entity: str
    subject: str
    actor: str
    cause: str
    data: bytes


class Entry(NamedTuple):
    """An event in the log. `data` is the msgpack map of the event's own fields.

    An example of `type` is `pod.ContainerStarted@1`, of `entity` `pod/default/web`. `actor` is the writer with its
    epoch, such as `prober/3#17`; `cause` is a position or the request id of a command.
    """

    position: Position
    type: str
    entity: str
    subject: str
    actor: str
    cause: str
    data: bytes


class Mail(NamedTuple):
    """A command in a mailbox stream. `id` is the entry's id in that stream; only the kernel sees it."""

    id: Position
    type: str
    entity: str
    request: str
    data: bytes
