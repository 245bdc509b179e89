"""What every message of the node looks like: events in the log, commands in mailboxes, and the entry around an event.

Comes in: nothing. Goes out: the base classes that the modules of the actors build on, and `Entry`, one line of the log.
Next: `registry` (which class a type name means) and `codec` (bytes).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all that a decider is told. Values are text, booleans, integers below 2^53, floats, lists, maps."""


class Event(Message, frozen=True, kw_only=True, omit_defaults=True):
    """A fact in the node's log, past tense. Published classes never change (see `upcasting`)."""

    VERSION: ClassVar[int] = 1

    def subject(self) -> str:
        """What within the entity this is about, such as `container/app`; empty for the entity as a whole."""
        return ""


class Command(Message, frozen=True, kw_only=True, omit_defaults=True):
    """A request from outside. Every command yields at least one event whose cause is `request`."""

    VERSION: ClassVar[int] = 1

    request: str


class Signal(Message, frozen=True, kw_only=True, omit_defaults=True):
    """What reaches a host in memory only: effect results, notices, relists, timers. Can always be asked for again."""


class Position(NamedTuple):
    """A log entry's id `<milliseconds>-<n>`; `n` counts the node's events without a gap."""

    milliseconds: int
    n: int

    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.n}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position that `str(position)` spells; raises ValueError for anything else."""
        milliseconds, _, n = text.partition("-")
        return cls(int(milliseconds), int(n))


START = Position(0, 0)

FIELDS = ("type", "entity", "subject", "actor", "cause", "data")
"""The fields of a log entry, in the order in which every entry carries them."""


class Record(NamedTuple):
    """One event on its way into the log: the entry's fields without a position."""

    type: str
    entity: str
    subject: str
    actor: str
    cause: str
    data: bytes


class Entry(NamedTuple):
    """One event as it stands in the log. `data` is the msgpack map of the event's own fields.

    `type` is `pod.ContainerStarted@1`; `entity` is `pod/default/web`; `actor` names who wrote it with its epoch,
    `prober/3#17`; `cause` is a position or the request id of a command.
    """

    position: Position
    type: str
    entity: str
    subject: str
    actor: str
    cause: str
    data: bytes


class Mail(NamedTuple):
    """One command as it stands in a mailbox stream. `id` is the stream's own id and never leaves the kernel."""

    id: Position
    type: str
    entity: str
    request: str
    data: bytes
