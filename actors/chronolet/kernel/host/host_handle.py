"""The handle through which other code reaches a host: the recovered state and the inbox.

Input: a recovered shard; then new messages, on the reader's thread. Output: the inbox that the host empties. It has no
thread of its own. Next: `host`, which starts from the handle; `reader`, which adds new messages.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from chronolet.kernel.effects.runner import NoteKey
from chronolet.kernel.effects.slot import Cleared, EffectInput, PauseOver, SlotFreed
from chronolet.kernel.host.inbox import Inbox
from chronolet.kernel.observer import Backlog
from chronolet.kernel.step.input import Input
from chronolet.kernel.step.ledger import Ledger
from chronolet.kernel.storage.store import DeadLetter
from chronolet_schemas.envelope import START, Event, Position

MOST_WAITING = 5_000
"""Once a host's inbox contains this number of items, the reader adds no more log entries, which stay in the log until
there is room.
"""

Item = Input | EffectInput | SlotFreed | PauseOver | Cleared
"""An item in a host's inbox."""


def message_of(item: Item) -> Input | None:
    """Return the message that an item contains, or None if it contains none."""
    return item if isinstance(item, Input) else item.item if isinstance(item, EffectInput) else None


class Recovered(Struct):
    """A recovered shard: its states, the messages that it has not consumed yet, and the position up to which the log
    was read.
    """

    ledger: Ledger[Any]
    backlog: list[Input]
    read_to: Position
    careful: bool
    log_time: int = 0
    """When the newest entry was written, in milliseconds."""
    mail_to: Position = START
    """Position in the shard's mailbox up to which commands are in the backlog."""
    notes: list[Event] = field(default_factory=list)
    """Kernel events that the host commits first."""
    dead: list[DeadLetter] = field(default_factory=list)
    """Dead letters committed with `notes`: the shard's own log entries that cannot be decoded."""
    snapshot_at: Position = START
    unclean: bool = False
    """Whether the former owner ended without a handover."""
    effect_notes: Mapping[NoteKey, str] = field(default_factory=dict)
    """What the effects of the former owner have left, if it moved the shard to this process."""
    attempts: Mapping[str, int] = field(default_factory=dict)
    """Attempt counts from the shard's hash, by message identity or effect mark."""


class HostHandle:
    """A handle to a host: other code uses it to offer messages, read the host's progress and stop the host."""

    def __init__(self, recovered: Recovered, behind_entries: int) -> None:
        """`behind_entries`: see `Timing`."""
        self.shard = recovered.ledger.shard
        self.ledger = recovered.ledger
        self.log_time = recovered.log_time
        self.read_to = recovered.read_to
        self.mail_to = recovered.mail_to
        self.recovered = recovered
        self.inbox: Inbox[Item] = Inbox()
        self._behind_entries = behind_entries
        self.stopping = threading.Event()
        self.caught_up = threading.Event()
        """Set once the host has decided its recovered backlog, or has stopped and never will."""
        self.moves_to = ""
        """The process to which the host hands over its shard; empty while it keeps it."""
        self.left_notes: Mapping[NoteKey, str] = {}
        """What the effects have left for the next owner, once the host has left."""

    def leave(self, to: str) -> None:
        """Let the host hand over its shard to another process: let its effects finish, commit its last step, stop."""
        self.moves_to = to
        self.inbox.nudge()

    def offer(self, items: Sequence[Input], read_to: Position, mail_to: Position = START) -> None:
        """Add messages that the reader has found in the log up to `read_to` and in the mailbox up to `mail_to`."""
        if items:
            self.inbox.put(*items)
        self.read_to = max(self.read_to, read_to)
        self.mail_to = max(self.mail_to, mail_to)
        if self.is_far_behind(read_to):
            self.inbox.nudge()

    def backlog(self) -> Backlog:
        """Count the messages that wait for the host. Usable from any thread."""
        items = self.inbox.waiting()
        entries = [one.at for one in items if isinstance(one, Input) and one.source == "log"]
        commands = [one.at for one in items if isinstance(one, Input) and one.source == "mailbox"]
        return Backlog(
            log_entries=len(entries),
            commands=len(commands),
            others=len(items) - len(entries) - len(commands),
            oldest_entry_at=entries[0].milliseconds if entries else 0,
            oldest_command_at=commands[0].milliseconds if commands else 0,
            seconds_waiting=self.inbox.seconds_waiting(),
        )

    @property
    def has_room(self) -> bool:
        """Whether the reader may add more log entries."""
        return len(self.inbox) < MOST_WAITING

    def is_far_behind(self, read_to: Position) -> bool:
        """Whether the host's committed cursor is so far behind `read_to` that it must be committed now, even without
        events.
        """
        return read_to.n - self.ledger.log_cursor.n > self._behind_entries
