"""The host: the pykka actor that owns one shard in one process and alone decides for its entities.

Comes in: log entries and commands from the reader, signals from effects, rings from timers. Goes out: steps to the
store; after each commit, effects and timers as the states ask for. Fails: its supervisor restarts it, and it replays.
Next: `ledger` (what a step is), `effects`, `supervisor`.

    one turn:  take what waits (about 100) -> decide and fold -> encode -> commit -> keep states -> effects, timers
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import pykka
import structlog

from chronolet.kernel.clock import Clock
from chronolet.kernel.effects import EffectInput, EffectRunner, LookAgain, Slot, SlotFreed, Surroundings
from chronolet.kernel.inbox import Inbox
from chronolet.kernel.kind import Due
from chronolet.kernel.ledger import TRIES, Input, Ledger, Turn, touched
from chronolet.kernel.observer import Observer
from chronolet.kernel.store import (
    Committed,
    Conflict,
    DeadLetter,
    Fenced,
    Snapshot,
    Step,
    Store,
    StoreBroken,
    StoreUnreachable,
)
from chronolet.kernel.timers import Timer
from chronolet_schemas import kernel
from chronolet_schemas.envelope import START, Event, Position

BATCH = 100
BEHIND_ENTRIES = 5_000
BEHIND_SECONDS = 60.0
SNAPSHOT_EVENTS = 10_000
SNAPSHOT_SECONDS = 600.0
CAREFUL_MESSAGES = 300
LONGEST_RETRY_SECONDS = 1.0
FENCED_PAUSE_SECONDS = 1.0
DUE_AGAIN_SECONDS = 30.0
"""After a ring went to the dead letters: its entity must not stay without a timer, nor fail the host all the time."""

log = structlog.get_logger("chronolet.kernel")

T = TypeVar("T")


class ShardLost(Exception):  # noqa: N818 - what happened to the host
    """Somebody else owns the shard now."""

    def __init__(self, token: str) -> None:
        super().__init__(f"the shard now belongs to {token or 'nobody'}")
        self.token = token


class ServerBehind(Exception):  # noqa: N818
    """The server no longer knows what this host committed, or read from it: it has lost a tail of its data."""


class ShardDiverged(Exception):  # noqa: N818
    """The shard is further than the step expected: it must be loaded again."""


@dataclass(slots=True)
class Recovered:
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
    tries: Mapping[str, int] = field(default_factory=dict)
    """Of messages that failed before, by their identity."""


class Seat:
    """What others hold of a host: offer messages, see how far it is, tell it to stop."""

    def __init__(self, recovered: Recovered) -> None:
        self.shard = recovered.ledger.shard
        self.ledger = recovered.ledger
        self.joined_at = recovered.read_to
        self.read_to = recovered.read_to
        self.mail_to = recovered.mail_to
        self.recovered = recovered
        self.inbox: Inbox[Input | EffectInput | SlotFreed | LookAgain] = Inbox()
        self.stopping = threading.Event()

    def offer(self, items: Sequence[Input], read_to: Position) -> None:
        """Messages that the reader found for this shard; everything up to `read_to` was looked at."""
        if items:
            self.inbox.put(*items)
        self.read_to = max(self.read_to, read_to)
        if read_to.n - self.ledger.log_cursor.n > BEHIND_ENTRIES:
            self.inbox.nudge()


class Woken(NamedTuple):
    """The only message in a host's pykka inbox: look into your `Inbox`."""


class Services(NamedTuple):
    """What hosts share in a process."""

    store: Store
    clock: Clock
    around: Surroundings
    """Without `deliver`: each host puts its own in."""
    new_id: Callable[[], str]
    failed: Callable[[Seat, BaseException], None]
    """Called on the host's thread when it fails, once."""


class Host(pykka.ThreadingActor):
    """Owns one shard. Others talk to it through its `Seat`."""

    use_daemon_thread = True

    def __init__(self, seat: Seat, services: Services) -> None:
        super().__init__()
        recovered = seat.recovered
        self.seat = seat
        self.ledger = seat.ledger
        self.inbox = seat.inbox
        self.stopping = seat.stopping
        self._services = services
        self._observer: Observer = services.around.observer
        self._runner = EffectRunner(
            self.ledger.kind, services.around._replace(deliver=self.inbox.put, token=self.ledger.token)
        )
        self._timers: dict[str, tuple[int, Timer]] = {}
        self._careful = CAREFUL_MESSAGES if recovered.careful else 0
        self._tried = dict(recovered.tries)
        self._notes = recovered.notes
        self._dead = recovered.dead
        self._last_step = time.monotonic()
        self._snapshot_at = recovered.snapshot_at
        self._snapshot_time = time.monotonic()
        self._events_since = 0
        self._begun = False
        self.inbox.put(*recovered.backlog)

    # -- pykka ---------------------------------------------------------------------------------------------------
    def on_start(self) -> None:
        """Look at what waits. The rest is done by the first turn, for pykka tells nobody of a failure in here."""
        self.inbox.open(self._wake)
        self.inbox.nudge()

    def on_receive(self, _message: Woken) -> None:
        """Take one turn; more that waits wakes the host again."""
        if self.stopping.is_set():
            return
        if not self._begun:
            self._begin()
        self._turn()

    def on_stop(self) -> None:
        """Cancel effects and timers; nothing of this host acts on the world from here on."""
        self.stopping.set()
        self._runner.stop()
        for _, timer in self._timers.values():
            timer.cancel()

    def on_failure(
        self, _exception_type: type[BaseException] | None, exception_value: BaseException | None, _traceback: Any
    ) -> None:
        """Tell the supervisor; it decides whether to start again."""
        self.on_stop()
        if exception_value is not None:
            self._services.failed(self.seat, exception_value)

    def _wake(self) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # reader, timers and workers may find it dead, and must live
            self.actor_ref.tell(Woken())

    # -- one turn ------------------------------------------------------------------------------------------------
    def _begin(self) -> None:
        """Arm timers and start effects for the states as recovered."""
        self._begun = True
        self._services.clock.at_least(max(self.seat.joined_at, self.ledger.at).milliseconds)
        for key in list(self.ledger.states):
            self._arm(key)
            self._reconcile(key)

    def _turn(self) -> None:
        read_to = self.seat.read_to  # before taking: whatever was read up to here is in the inbox already
        # Notes in a step of their own: what is told in them must not be lost with a message that fails.
        items = self.inbox.take(0 if self._notes else 1 if self._careful else BATCH)
        turn = self.ledger.begin()
        self._add_notes(turn)
        settled = [self._fold(turn, item) for item in items]
        if self.inbox.idle():
            turn.log_cursor = max(turn.log_cursor, read_to)
        if self._is_worth_a_step(turn):
            self._commit(turn)
        else:
            self.ledger.passed(turn)
        for freed in settled:
            if freed is not None:
                self._runner.settle(freed[0], self._wanted(freed[0].key), freed[1])
        for key in {*touched(turn), *turn.looked}:
            self._arm(key)
            self._reconcile(key)
        self._upkeep()
        if self.inbox.rearm():
            self._wake()

    def _add_notes(self, turn: Turn[Any]) -> None:
        for note in self._notes:
            self.ledger.note(turn, note)
        jumped = self._services.clock.jump() if self.ledger.kind.watches_clock else 0
        if jumped:
            self.ledger.note(turn, kernel.ClockJumped(by_milliseconds=jumped))
        turn.dead += self._dead
        self._notes, self._dead = [], []

    def _fold(self, turn: Turn[Any], item: Input | EffectInput | SlotFreed | LookAgain) -> tuple[Slot, float] | None:
        """Decide one item; the slot it frees, with the pause before its wish may be tried again."""
        if isinstance(item, LookAgain):
            self._runner.release(item)
            turn.looked.append(item.key)
            return None
        if isinstance(item, SlotFreed):
            turn.looked.append(item.slot.key)
            return item.slot, self._freed(turn, item)
        message, slot = (item.item, item.slot) if isinstance(item, EffectInput) else (item, None)
        self._decide(turn, message)
        if slot:
            turn.looked.append(slot.key)
        return (slot, self._runner.next_pause(slot)) if slot else None

    def _freed(self, turn: Turn[Any], freed: SlotFreed) -> float:
        if freed.slot.cancelled.is_set():
            return 0.0
        if not freed.error:
            return FENCED_PAUSE_SECONDS  # the lease's failure, not the wish's: no reason to wait longer and longer
        pause = self._runner.next_pause(freed.slot, freed.ran_seconds)
        about = f"{self.ledger.kind.name}/{freed.slot.key} {freed.slot.effect.subject}"
        name = type(freed.slot.effect).__name__
        milliseconds = round(pause * 1000)
        failing = kernel.EffectsFailing(effect=name, about=about, error=freed.error, retry_in_milliseconds=milliseconds)
        self.ledger.note(turn, failing)
        return pause

    def _decide(self, turn: Turn[Any], item: Input) -> None:
        if item.source == "log" and item.at <= self.ledger.decided_to:
            return  # read twice: once by the recovery's scan, once by the reader
        if item.source == "mailbox" and item.at <= self.ledger.mail_cursor:
            return
        if self._careful:
            self._careful -= 1
            if not self._may_try(item):
                self.ledger.give_up(
                    turn, item, TRIES, "failed three times; the events HostRestarted before this one say how"
                )
                self._observer.dead_lettered(self.ledger.kind.name)
                self._ring_again(item)
                return
            turn.forget.append(item.identity())
            if not self._careful:
                # Tries of signals that did not come again would make every later start a careful one.
                turn.forget += self._tried
                self._tried = {}
        now = self._services.clock.now()
        if isinstance(due := item.message, Due):
            armed = self._timers.get(item.keys[0])
            if armed is None or armed[0] != due.at:
                return  # the state has moved on since this timer rang
            del self._timers[item.keys[0]]
            item = item._replace(cause=self.ledger.cause_for(item.keys[0], ""))
            self._services.clock.at_least(due.at)
            now = max(now, due.at)
        self.ledger.decide(turn, item, now)

    def _ring_again(self, item: Input) -> None:
        """A ring that was given up rings later once more, and is counted anew."""
        if isinstance(due := item.message, Due):
            key, at = item.keys[0], due.at
            if key in self._timers and self._timers[key][0] == at:  # else the state has moved on since
                timer = self._services.around.timers.after(DUE_AGAIN_SECONDS, lambda: self._ring(key, at))
                self._timers[key] = at, timer

    def _may_try(self, item: Input) -> bool:
        """Count one more try of a message, unless it has had all of them."""
        message = item.identity()
        count = self._tried.pop(message, 0) + 1
        if count > TRIES:
            return False
        ledger, store = self.ledger, self._services.store
        answer = self._patiently(lambda: store.count_try(ledger.shard, ledger.token, message, count))
        if isinstance(answer, Fenced):
            raise self._lost(answer)
        return True

    def _is_worth_a_step(self, turn: Turn[Any]) -> bool:
        consumed = turn.mail_cursor > self.ledger.mail_cursor
        return bool(turn.records or turn.dead or turn.forget) or consumed or self._is_behind(turn)

    def _is_behind(self, turn: Turn[Any]) -> bool:
        behind = turn.log_cursor.n - self.ledger.log_cursor.n
        return behind > BEHIND_ENTRIES or (behind > 0 and time.monotonic() - self._last_step > BEHIND_SECONDS)

    # -- the commit ----------------------------------------------------------------------------------------------
    def _commit(self, turn: Turn[Any]) -> None:
        ledger = self.ledger
        step = Step(
            shard=ledger.shard,
            token=ledger.token,
            version=ledger.version,
            step_id=self._services.new_id(),
            schema=ledger.schema,
            log_cursor=ledger.log_cursor,
            new_log_cursor=turn.log_cursor,
            mail_cursor=ledger.mail_cursor,
            new_mail_cursor=turn.mail_cursor,
            records=tuple(turn.records),
            dead=tuple(turn.dead),
            forget_tries=tuple(turn.forget),
            even_if_full=ledger.kind.commits_when_full,
        )
        types = "+".join(record.type.partition("@")[0] for record in turn.records)
        faults = self._services.around.faults
        faults.point(f"step/before {ledger.shard} {types}")
        started = time.monotonic()
        answer = self._send(step)
        self._last_step = time.monotonic()
        faults.point(f"step/after {ledger.shard} {types}")
        ledger.committed(turn, answer)
        self._services.clock.at_least(answer.at.milliseconds)
        self._observer.step_done(ledger.shard, turn.events, self._last_step - started)
        self._events_since += len(turn.records)

    def _send(self, step: Step) -> Committed:
        """Send until answered: the same bytes each time, never another step in its place."""
        answer = self._patiently(lambda: self._services.store.step(step))
        if isinstance(answer, Fenced):
            self._observer.step_refused(step.shard, "fenced")
            raise self._lost(answer)
        if isinstance(answer, Conflict):
            self._observer.step_refused(step.shard, "conflict")
            text = f"{step.shard}: a step from version {step.version} on, but the server has version {answer.version}"
            if answer.version > step.version:
                raise ShardDiverged(text)
            raise ServerBehind(f"{text}, or lacks what was read from it")
        return answer

    def _patiently(self, call: Callable[[], T]) -> T:
        """The answer of a call that may be repeated, however long the server is away or a key of it unusable."""
        pause, said = 0.05, ""
        while True:
            try:
                return call()
            except (StoreUnreachable, StoreBroken) as error:
                if str(error) != said:  # once, however long it takes
                    said = str(error)
                    log.warning("not answered, asking again", shard=str(self.ledger.shard), error=said)
                if self.stopping.wait(pause):
                    raise
                pause = min(pause * 2, LONGEST_RETRY_SECONDS)

    def _lost(self, answer: Fenced) -> ShardLost | ServerBehind:
        theirs, ours = answer.token.partition(":")[0], self.ledger.token.partition(":")[0]
        if int(theirs or 0) < int(ours):
            return ServerBehind(f"{self.ledger.shard}: the server's token {answer.token!r} is older than ours")
        return ShardLost(answer.token)

    # -- after it ------------------------------------------------------------------------------------------------
    def _wanted(self, key: str) -> Sequence[Any]:
        state = self.ledger.states.get(key)
        return () if state is None else self.ledger.kind.decider.outstanding(state)

    def _reconcile(self, key: str) -> None:
        self._runner.reconcile(key, self._wanted(key), lambda subject: self.ledger.cause_for(key, subject))

    def _arm(self, key: str) -> None:
        state = self.ledger.states.get(key)
        due = None if state is None else self.ledger.kind.decider.due(state)
        armed = self._timers.get(key)
        if armed is not None and armed[0] == due:
            return
        if armed is not None:
            armed[1].cancel()
            del self._timers[key]
        if due is not None:
            delay = (due - self._services.clock.now()) / 1000
            self._timers[key] = (due, self._services.around.timers.after(delay, lambda: self._ring(key, due)))

    def _ring(self, key: str, due: int) -> None:
        self.inbox.put(Input("due", START, (key,), Due(at=due), "", f"{self.ledger.kind.name}.Due"))

    def _upkeep(self) -> None:
        at = max(self.ledger.at, self.ledger.log_cursor)
        many = self._events_since >= SNAPSHOT_EVENTS or at.n - self._snapshot_at.n >= SNAPSHOT_EVENTS
        old = time.monotonic() - self._snapshot_time > SNAPSHOT_SECONDS and at > self._snapshot_at
        if not (many or old):
            return
        snapshot = Snapshot(position=at, format=self.ledger.kind.format, state=self.ledger.snapshot())
        try:
            kept = self._services.store.snapshot(self.ledger.shard, self.ledger.token, snapshot)
        except (StoreUnreachable, StoreBroken) as error:
            log.warning("no snapshot this time", shard=str(self.ledger.shard), error=str(error))
        else:
            if not kept:
                log.warning("the snapshot was refused", shard=str(self.ledger.shard), at=str(at))
        # Kept or not, the next one is due in its own time: encoding all states each turn would cost too much.
        self._snapshot_at, self._snapshot_time, self._events_since = at, time.monotonic(), 0
