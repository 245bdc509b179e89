"""A host's handle: what recovery puts on it, and what others hold of the host that takes it.

Comes in: a shard as recovery found it; then messages, from the reader's thread. Goes out: the inbox that the host
empties. No thread of its own. Next: `host`, which sits on it; `reader`, which brings what is new.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from chronolet.kernel.effects.runner import EffectInput, LookAgain, Outlived, SlotFreed
from chronolet.kernel.hosting.inbox import Inbox
from chronolet.kernel.step.ledger import Input, Ledger
from chronolet.kernel.storage.store import DeadLetter
from chronolet_schemas.envelope import START, Event, Position

BEHIND_ENTRIES = 5_000
"""A host so many entries behind commits a step even if it has nothing to say: the keeper trims no further."""

MOST_WAITING = 5_000
"""Messages for a host. The log keeps the rest until there is room."""

Item = Input | EffectInput | SlotFreed | LookAgain | Outlived
"""What a host takes from its inbox."""


def message_of(item: Item) -> Input | None:
    """What an item has to be decided, if anything."""
    return item if isinstance(item, Input) else item.item if isinstance(item, EffectInput) else None


class Recovered(Struct):
    """A shard as recovery hands it to its host: states, messages it has not consumed yet, and how far was read."""

    ledger: Ledger[Any]
    backlog: list[Input]
    read_to: Position
    careful: bool
    mail_to: Position = START
    """How far the backlog goes in the shard's mailbox."""
    notes: list[Event] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    """What goes to the dead letters with the notes: own entries that cannot be read."""
    snapshot_at: Position = START
    unclean: bool = False
    """The former owner ended without handing over."""
    tries: Mapping[str, int] = field(default_factory=dict)
    """Of messages that failed before, by their identity."""


class HostHandle:
    """What others hold of a host: offer messages, see how far it is, tell it to stop."""

    def __init__(self, recovered: Recovered) -> None:
        self.shard = recovered.ledger.shard
        self.ledger = recovered.ledger
        self.joined_at = recovered.read_to
        self.read_to = recovered.read_to
        self.mail_to = recovered.mail_to
        self.recovered = recovered
        self.inbox: Inbox[Item] = Inbox()
        self.stopping = threading.Event()
        self.caught_up = threading.Event()
        """Set once the messages that recovery found are decided, or will not be by this host."""

    def offer(self, items: Sequence[Input], read_to: Position, mail_to: Position = START) -> None:
        """Messages that the reader found for this shard: in the log up to `read_to`, in its mailbox up to `mail_to`."""
        if items:
            self.inbox.put(*items)
        self.read_to = max(self.read_to, read_to)
        self.mail_to = max(self.mail_to, mail_to)
        if is_far_behind(self.ledger.log_cursor, read_to):
            self.inbox.nudge()

    @property
    def has_room(self) -> bool:
        """Whether more of the log may be brought."""
        return len(self.inbox) < MOST_WAITING


def is_far_behind(cursor: Position, read_to: Position) -> bool:
    """Whether a host is to move its cursor now, though it has nothing to say."""
    return read_to.n - cursor.n > BEHIND_ENTRIES
