"""Turns messages into a step: holds the folded states of one shard and decides the waiting messages of one turn.

Input: messages as `Input`s (log events, commands, signals, due timers), and the store's reply to the step. Output: a
`Turn` with records to commit and, after the commit, the keys of entities whose effects and timers may have changed. No
I/O, no clock. Next: `host`, `recovery`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct, field

from chronolet.kernel.decider import Due, Effect
from chronolet.kernel.folding import folded
from chronolet.kernel.kind import Kind
from chronolet.kernel.recording.inputs import InputRecorder
from chronolet.kernel.step.input import Input
from chronolet.kernel.step.snapshots import EntityImage, encode_states
from chronolet.kernel.storage.store import Committed, DeadLetter, Head, owner_of
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import START, Command, Event, Message, Position, Record
from chronolet_schemas.keys import Shard

S = TypeVar("S")

MAX_ATTEMPTS = 3
"""Number of attempts at a message, or at an effect that ends the process, before it is sent to the dead letters."""
ENDED_THE_PROCESS = "the process ended three times while it ran"
SUBJECTS_KEPT = 128
"""Maximum number of subjects per entity for which the position of the last event is stored. For other subjects, the
position of the entity's last event is used instead.
"""


class SilentMessage(Exception):  # noqa: N818 - the decider's omission, not the caller's
    """The decider returned no event for a command or a `Due`. The command's sender would wait indefinitely, or the
    timer would fire again and again.
    """


class StillDue(Exception):  # noqa: N818
    """The events that the decider returned for a `Due` leave the entity due. The timer would fire again and again."""


class Turn(Struct, Generic[S]):
    """The content of one step to be committed, and the resulting states."""

    records: list[Record] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    owners: list[tuple[str, str]] = field(default_factory=list)
    """(key, subject) of the event in each record. Both are empty for events of other kinds, which never request effects
    of this kind.
    """
    states: dict[str, S | None] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    """Entities that have ended, each with the number of records up to its end. Later records may begin a new entity
    with the same key.
    """
    dead: list[DeadLetter] = field(default_factory=list)
    forget: list[str] = field(default_factory=list)
    """Attempt counts to remove from the shard's hash, by message identity or effect mark."""
    to_reconcile: list[str] = field(default_factory=list)
    """Keys of entities whose effects must be reconciled although their states have not changed."""
    log_cursor: Position = START
    mail_cursor: Position = START


class Ledger(Generic[S]):
    """The states of one shard, with the positions in log and mailbox up to which messages have been decided."""

    def __init__(self, kind: Kind[S], shard: Shard, token: str, head: Head, schema: int) -> None:
        self.kind = kind
        self.snapshot_format = kind.format
        """Format number of the shard's snapshots (`snapshots.snapshot_format`)."""
        self.shard = shard
        self.token = token
        self.schema = schema
        self.version = head.version
        self.log_cursor = head.log_cursor
        self.mail_cursor = head.mail_cursor
        self.decided_to = head.log_cursor
        """Highest log position decided so far, whether or not its step is committed. Entries that lead to no event do
        not justify a step of their own: the next step moves the log cursor past them, so that they are not decided
        again after later entries.
        """
        self.at = head.at
        self.states: dict[str, S] = dict.fromkeys(kind.at_start, kind.decider.initial)
        self.positions: dict[str, dict[str, Position]] = {}
        epoch = token.partition(":")[0]
        self.actor = f"{shard}#{epoch}"
        self._prefix = f"{kind.name}."
        self._own: dict[type[Event], bool] = {}
        self._effects: dict[str, tuple[S, Sequence[Effect]]] = {}
        """For each entity, the outstanding effects of the state for which they were computed last: they are needed
        after the step, to start them, and in the next decision, to record what it was made from.
        """
        self._recorder = InputRecorder(kind, owner_of(token))

    # -- recovery ------------------------------------------------------------------------------------------------
    def restore(self, images: Mapping[str, EntityImage[S]]) -> None:
        """Load a snapshot. Entities of `Kind.at_start` that are not in the snapshot no longer exist."""
        self.states = {key: image.state for key, image in images.items()}
        for key, image in images.items():
            if image.positions:
                self.positions[key] = {subject: Position.parse(at) for subject, at in image.positions.items()}

    def replay(self, key: str, event: Event, subject: str, at: Position) -> None:
        """Fold one of the shard's own log entries into the states."""
        state = folded(self.kind.decider, self.states.get(key), event)
        if state is None:
            self._keep(key, None)
            return
        self.states[key] = state
        if not self._is_own(event):
            return
        self._remember(key, subject, at)

    # -- one turn ------------------------------------------------------------------------------------------------
    def begin(self) -> Turn[S]:
        """Return an empty turn that starts at the current cursors."""
        return Turn(log_cursor=self.decided_to, mail_cursor=self.mail_cursor)

    def passed(self, turn: Turn[S]) -> None:
        """Accept a turn that has nothing to commit: only `decided_to` advances."""
        self.decided_to = turn.log_cursor

    def decide(self, turn: Turn[S], item: Input, now: int) -> None:
        """Decide one message for each entity that it concerns, and add the events to the turn. An undecodable message
        is quarantined instead. Raises SilentMessage or StillDue if the decider violates its contract.
        """
        self._consume(turn, item)
        if item.undecodable:
            self._quarantine(turn, item)
            return
        before = len(turn.records)
        for key in item.keys:
            self._decide_for(turn, item, key, now)
        if isinstance(item.message, Command) and len(turn.records) == before:
            raise SilentMessage(f"{item.type} {item.cause}: {self.kind.name} yielded no event, expected at least one")

    def give_up(self, turn: Turn[S], item: Input, attempts: int, error: str, *, for_good: bool = False) -> None:
        """Send a message that failed too often to the dead letters, and record an event. The message's attempt count is
        removed, unless the message is given up permanently (`for_good`).
        """
        self._consume(turn, item)
        where = item.cause if item.source == "mailbox" else item.identity()
        source: Literal["log", "mailbox", "signal"] = "signal" if item.source == "due" else item.source
        turn.dead.append(DeadLetter(source, where, item.type, item.entity, item.data, error))
        if not for_good:
            turn.forget.append(item.identity())
        self.note(
            turn,
            kernel.MessageDeadLettered(message=item.type, source=source, at=where, tries=attempts, error=error),
            cause=item.cause,
        )

    def give_up_effect(self, turn: Turn[S], key: str, effect: Effect, at: str, cause: str) -> None:
        """Send an effect that ended too many processes to the dead letters, with its data, and record an event."""
        name, error = f"{self.kind.name}.{type(effect).__name__}", ENDED_THE_PROCESS
        turn.dead.append(
            DeadLetter("signal", at, name, f"{self.kind.name}/{key}", msgspec.msgpack.encode(effect), error)
        )
        dead_lettered = kernel.MessageDeadLettered(
            message=name, source="signal", at=at, tries=MAX_ATTEMPTS, error=error
        )
        self.note(turn, dead_lettered, cause=cause)

    def note(self, turn: Turn[S], event: Event, cause: str = "") -> None:
        """Add one of the kernel's own events about this shard to the turn."""
        record = self._record(event, f"shard/{self.shard}", cause)
        self._recorder.note(record)
        turn.records.append(record)
        turn.events.append(event)
        turn.owners.append(("", ""))

    def committed(self, turn: Turn[S], answer: Committed) -> None:
        """Apply the turn's states, cursors and event positions, after its step was committed."""
        first = answer.at.n - len(turn.records) + 1
        for key in turn.gone:
            self.positions.pop(key, None)
        for offset, (key, subject) in enumerate(turn.owners):
            if key and offset >= turn.gone.get(key, 0):
                self._remember(key, subject, Position(answer.at.milliseconds, first + offset))
        for key, state in turn.states.items():
            self._keep(key, state)
        self.version = answer.version
        self.at = answer.at if turn.records else self.at
        self.log_cursor, self.mail_cursor = turn.log_cursor, turn.mail_cursor
        self.decided_to = turn.log_cursor

    # -- derived from the states ---------------------------------------------------------------------------------
    def cause_for(self, key: str, subject: str) -> str:
        """Return the position of the entity's last event about the subject. If there is none, return that of the
        entity's last event; empty if it has no events.
        """
        positions = self.positions.get(key, {})
        at = positions.get(subject) or next(reversed(positions.values()), None)
        return str(at) if at else ""

    def outstanding(self, key: str) -> Sequence[Effect]:
        """Return the effects that should be running for an entity."""
        state = self.states.get(key)
        return () if state is None else self._outstanding_in(state, key)

    def snapshot(self) -> bytes:
        """Encode all entities for a snapshot, as msgpack."""
        return encode_states(self.images())

    def images(self) -> Mapping[str, EntityImage[S]]:
        """Return all entities as they are stored in a snapshot."""
        return {
            key: EntityImage(state=state, positions={s: str(at) for s, at in self.positions.get(key, {}).items()})
            for key, state in self.states.items()
        }

    # -- inside --------------------------------------------------------------------------------------------------
    def _consume(self, turn: Turn[S], item: Input) -> None:
        if item.source == "log":
            turn.log_cursor = max(turn.log_cursor, item.at)
        elif item.source == "mailbox":
            turn.mail_cursor = max(turn.mail_cursor, item.at)

    def _decide_for(self, turn: Turn[S], item: Input, key: str, now: int) -> None:
        decider = self.kind.decider
        known = turn.states[key] if key in turn.states else self.states.get(key)
        if known is None and not self._may_create(item.message):
            return
        due = decider.due(known) if isinstance(item.message, Due) and known is not None else None
        if isinstance(item.message, Due) and (due is None or due > item.message.at):
            return  # an earlier message of this turn has moved the due time
        entity = f"{self.kind.name}/{key}"
        state = decider.initial if known is None else known
        events = decider.decide(state, item.message, now)
        if isinstance(item.message, Due) and not events:
            raise SilentMessage(f"{entity}: due at {item.message.at} yielded no event, expected at least one")
        records = [self._record(event, entity, item.cause) for event in events]
        if records:
            records[0] = self._recorder.recorded(item, due, partial(self._outstanding_in, state, key), now, records)
        for record, event in zip(records, events, strict=True):
            turn.records.append(record)
            turn.events.append(event)
            turn.owners.append((key, event.subject()) if self._is_own(event) else ("", ""))
            known = turn.states[key] = folded(decider, known, event)
            if known is None:
                turn.gone[key] = len(turn.records)
        if isinstance(item.message, Due) and known is not None:
            due = decider.due(known)
            if due is not None and due <= item.message.at:
                raise StillDue(f"{entity}: due at {item.message.at}, and still due at {due} after its events")

    def _outstanding_in(self, state: S, key: str) -> Sequence[Effect]:
        known = self._effects.get(key)
        if known is None or known[0] is not state:
            known = self._effects[key] = (state, self.kind.decider.outstanding(state))
        return known[1]

    def _is_own(self, event: Event) -> bool:
        """Whether the event belongs to this kind and is not an accompanying KubeEvent. Only own events request
        effects.
        """
        own = self._own.get(type(event))
        if own is None:
            own = self._own[type(event)] = registry.type_of(type(event)).startswith(self._prefix)
        return own

    def _may_create(self, message: Message | None) -> bool:
        # Always decide a command, even if only to refuse it: its sender waits for the reply.
        return isinstance(message, Command) or type(message) in self.kind.creates

    def _record(self, event: Event, entity: str, cause: str) -> Record:
        return Record(registry.type_of(type(event)), entity, event.subject(), self.actor, cause, codec.encode(event))

    def _quarantine(self, turn: Turn[S], item: Input) -> None:
        source: Literal["log", "mailbox"] = "mailbox" if item.source == "mailbox" else "log"
        where = item.cause if source == "mailbox" and item.cause else str(item.at)
        turn.dead.append(DeadLetter(source, where, item.type, item.entity, item.data, item.undecodable))
        self.note(
            turn,
            kernel.EntryQuarantined(message=item.type, source=source, at=where, error=item.undecodable),
            cause=item.cause,
        )

    def _remember(self, key: str, subject: str, at: Position) -> None:
        """Store the position of the subject's last event, and drop the least recent subject beyond the limit: finished
        subjects, such as the attempts of a container, must not accumulate.
        """
        positions = self.positions.get(key)
        if positions is None:  # not setdefault: this runs for every entry of the log
            positions = self.positions[key] = {}
        positions.pop(subject, None)
        positions[subject] = at
        if len(positions) > SUBJECTS_KEPT:
            del positions[next(iter(positions))]

    def _keep(self, key: str, state: S | None) -> None:
        if state is None:
            self.states.pop(key, None)
            self.positions.pop(key, None)
            self._effects.pop(key, None)
        else:
            self.states[key] = state


def touched(turn: Turn[Any]) -> Iterable[str]:
    """Return the keys of the entities whose effects and timers this turn may have changed."""
    return turn.states.keys()
