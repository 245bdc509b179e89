"""The host: the pykka actor that owns one shard in one process and alone decides for its entities.

Comes in: log entries and commands from the reader, signals from effects, rings from timers. Goes out: steps to the
store; after each commit, effects and timers as the states ask for. Fails: its supervisor restarts it, and it replays.
Next: `ledger` (what a step is), `shard_writer` (how it is committed), `effects`, `alarms`, `supervisor`.

    one turn:  take what waits (about 100) -> decide and fold -> encode -> commit -> keep states -> effects, timers
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pykka

from chronolet.kernel.clock import Clock
from chronolet.kernel.effects.runner import (
    EffectInput,
    EffectRunner,
    LookAgain,
    Outlived,
    RunnerDependencies,
    Slot,
    SlotFreed,
)
from chronolet.kernel.hosting.entity_timers import Alarms
from chronolet.kernel.hosting.host_handle import Item, Seat, is_far_behind, message_of
from chronolet.kernel.kind import Due, EffectFailed
from chronolet.kernel.step.gathering import gathered
from chronolet.kernel.step.ledger import TRIES, Input, Turn, touched
from chronolet.kernel.step.retry_counts import Trials
from chronolet.kernel.step.shard_writer import ShardWriter
from chronolet.kernel.step.suspects import GIVEN_UP, Suspects, mark_of
from chronolet.kernel.storage.store import Store
from chronolet_schemas import kernel

BATCH = 100
BEHIND_SECONDS = 60.0
FENCED_PAUSE_SECONDS = 1.0
GIVEN_UP_PAUSE_SECONDS = 300.0
"""Of a wish whose answer, and then its failure, could not be decided: each try ends the host some times."""


_WHY_FAILED = "failed three times; the events HostRestarted before this one say how"
_WHY_ENDED = "failed three times, or the process ended three times while it was decided; HostRestarted says which"


class Woken(NamedTuple):
    """The only message in a host's pykka inbox: look into your `Inbox`."""


class Services(NamedTuple):
    """What hosts share in a process."""

    store: Store
    clock: Clock
    around: RunnerDependencies
    """Without `deliver`: each host puts its own in."""
    new_id: Callable[[], str]
    failed: Callable[[Seat, BaseException], None]
    """Called on the host's thread when it fails, once."""


class Host(pykka.ThreadingActor):
    """Owns one shard. Others talk to it through its `Seat`."""

    use_daemon_thread = True

    def __init__(self, seat: Seat, services: Services) -> None:
        super().__init__()
        recovered, around = seat.recovered, services.around
        self.seat = seat
        self.ledger = seat.ledger
        self.inbox = seat.inbox
        self.stopping = seat.stopping
        self._services = services
        self._writer = ShardWriter(self.ledger, services.store, recovered.snapshot_at, seat.stopping, services.new_id)
        self._trials = Trials(recovered.tries, self._writer.count_tries, careful=recovered.careful)
        self._suspects = Suspects(recovered.tries, self._writer.count_tries, unclean=recovered.unclean)
        own = around._replace(deliver=self.inbox.put, token=self.ledger.token)
        self._runner = EffectRunner(self.ledger.kind, own, self._suspects, self._trials.going_on)
        self._unclean = recovered.unclean
        self._recovered_tries = bool(recovered.tries)
        self._waited = len(recovered.backlog)
        self._given_up: list[str] = []
        """Marks of effects whose dead letters are in the turn at hand."""
        self._forget: list[str] = []
        self._alarms = Alarms(self.ledger.kind.name, around.timers, self.inbox.put)
        self._notes = recovered.notes
        self._dead = recovered.dead
        self._looked = False
        self._begun = False
        self._unread = len(recovered.backlog)
        """How many of the messages that recovery found are not decided yet: effects begin behind the last of them."""
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
        if not self._looked:
            self._look_at_recovered()
        self._begin_if_read()
        self._turn()

    def on_stop(self) -> None:
        """Cancel effects and timers; nothing of this host acts on the world from here on."""
        self.stopping.set()
        self._runner.stop()
        self._alarms.stop()
        self.seat.caught_up.set()

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
    def _look_at_recovered(self) -> None:
        """Once, before the first turn."""
        self._looked = True
        self._services.clock.log_says(max(self.seat.joined_at, self.ledger.at).milliseconds)
        if self._unclean or self._recovered_tries:
            self._take_care()

    def _begin_if_read(self) -> None:
        """Arm timers and start effects once the messages that waited are decided: what one withdraws must not start."""
        if not self._begun and not self._unread:
            self._begun = True
            self._follow(list(self.ledger.states))
            self.seat.caught_up.set()

    def _take_care(self) -> None:
        """One of the messages that wait, of the timers that are due, or of the effects that are asked for, may have
        ended the process before this one: until all of them have been decided, each is taken by itself.
        """
        now, decider = self._services.clock.now(), self.ledger.kind.decider
        effects = {mark_of(key, one) for key in self.ledger.states for one in self._runner.counted(self._wanted(key))}
        dues = {key: due for key, state in self.ledger.states.items() if (due := decider.due(state)) is not None}
        rings = {self._alarms.ring(key, due).identity() for key, due in dues.items()}
        self._forget += (*self._suspects.drop(effects), *self._trials.drop(rings))
        if self._unclean:
            overdue = sum(1 for due in dues.values() if due <= now)
            self._trials.take_care(self._waited + overdue + len(effects))

    def _turn(self) -> None:
        read_to = self.seat.read_to  # before taking: whatever was read up to here is in the inbox already
        # Notes in a step of their own: what is told in them must not be lost with a message that fails.
        watched = self._trials.going_on()
        waiting = self.inbox.take(0 if self._notes else BATCH, self._alone if watched else None)
        self._unread = max(0, self._unread - len(waiting))
        items = gathered(self.ledger.kind.gathers, waiting, self.ledger.decided_to)
        if watched:
            self._count_tries(items)
        turn = self.ledger.begin()
        self._add_notes(turn)
        settled = [self._fold(turn, item) for item in items]
        if self.inbox.idle():
            turn.log_cursor = max(turn.log_cursor, read_to)
        if self._is_worth_a_step(turn):
            self._commit(turn)
        else:
            self.ledger.passed(turn)
        self._trials.end()
        over = [freed for freed in settled if freed is not None]
        try:
            for slot, pause in over:
                self._runner.settle(slot, self._wanted(slot.key), pause)
            if self._begun:
                self._follow({*touched(turn), *turn.looked})
        finally:
            for slot, _ in over:
                slot.leave()
        self._begin_if_read()
        self._writer.snapshot_if_due()
        if self.inbox.rearm():
            self._wake()

    def _alone(self, item: Item) -> bool:
        """Whether an item is decided in a step of its own."""
        return message_of(item) is not None and self._trials.alone(covered=self._is_covered(item))

    def _count_tries(self, items: Iterable[Item]) -> None:
        """Note the tries of all messages of a turn, in one round trip. An answer is covered by its effect's mark, which
        the end of the process leaves behind as well.
        """
        waiting = [(item, one) for item in items if (one := message_of(item)) is not None and not self._is_over(one)]
        counted = [one for item, one in waiting if self._trials.alone(covered=self._is_covered(item))]
        self._trials.begin(counted, covered=len(waiting) - len(counted))

    def _is_covered(self, item: Item) -> bool:
        return isinstance(item, EffectInput) and self._suspects.covers(item.slot.mark)

    def _is_over(self, item: Input) -> bool:
        return self._was_decided(item) or self._trials.was_given_up(item)

    def _was_decided(self, item: Input) -> bool:
        """Whether a message was read twice: by the recovery's scan, and by the reader."""
        logged = item.source == "log" and item.at <= self.ledger.decided_to
        return logged or (item.source == "mailbox" and item.at <= self.ledger.mail_cursor)

    def _add_notes(self, turn: Turn[Any]) -> None:
        for note in self._notes:
            self.ledger.note(turn, note)
        jumped = self._services.clock.jump() if self.ledger.kind.watches_clock else 0
        if jumped:
            self.ledger.note(turn, kernel.ClockJumped(by_milliseconds=jumped))
        turn.dead += self._dead
        turn.forget += self._forget
        self._notes, self._dead, self._forget = [], [], []

    def _is_worth_a_step(self, turn: Turn[Any]) -> bool:
        consumed = turn.mail_cursor > self.ledger.mail_cursor
        return bool(turn.records or turn.dead or turn.forget) or consumed or self._is_behind(turn)

    def _is_behind(self, turn: Turn[Any]) -> bool:
        cursor = self.ledger.log_cursor
        late = turn.log_cursor.n > cursor.n and self._writer.seconds_since_step() > BEHIND_SECONDS
        return late or is_far_behind(cursor, turn.log_cursor)

    def _commit(self, turn: Turn[Any]) -> None:
        self._writer.commit(turn, self._services.around.faults, self._services.around.observer)
        given_up, self._given_up = self._given_up, []
        if given_up:  # after the step: better two dead letters than none
            self._writer.count_tries(dict.fromkeys(given_up, GIVEN_UP))

    # -- one item ------------------------------------------------------------------------------------------------
    def _fold(self, turn: Turn[Any], item: Item) -> tuple[Slot, float] | None:
        """Decide one item; the slot it frees, with the pause before its wish may be tried again."""
        if isinstance(item, LookAgain):
            self._runner.release(item)
            turn.looked.append(item.key)
            return None
        if isinstance(item, Outlived):
            if self._runner.runs(item.slot):
                self._absolve(turn, item.slot)
                self._runner.absolve(item.slot)
            return None
        if isinstance(item, SlotFreed):
            self._absolve(turn, item.slot)
            turn.looked.append(item.slot.key)
            return item.slot, self._freed(turn, item)
        if isinstance(item, EffectInput):
            return self._answered(turn, item)
        self._take(turn, item)
        return None

    def _answered(self, turn: Turn[Any], answer: EffectInput) -> tuple[Slot, float] | None:
        slot = answer.slot
        if slot.mark and self._suspects.ended(slot.mark) >= TRIES:
            self._give_up_effect(turn, slot)
        else:
            self._absolve(turn, slot)
        decided = self._take(turn, answer.item)
        if not decided and not isinstance(answer.item.message, EffectFailed):
            # The wish stays open, and the same answer would end the host again: its decider is to know.
            self.inbox.put(slot.failed("its answer could not be decided, see the dead letters"))
            return None
        turn.looked.append(slot.key)
        return slot, self._runner.next_pause(slot) if decided else GIVEN_UP_PAUSE_SECONDS

    def _absolve(self, turn: Turn[Any], slot: Slot) -> None:
        if slot.mark:
            turn.forget += self._suspects.over(slot.mark)

    def _give_up_effect(self, turn: Turn[Any], slot: Slot) -> None:
        """To the dead letters, once; its decider is told each time that it asks for it."""
        if not self._suspects.was_given_up(slot.mark):
            self.ledger.give_up_effect(turn, slot.key, slot.effect, slot.mark, slot.cause)
            self._services.around.observer.dead_lettered(self.ledger.kind.name)
            self._given_up.append(self._suspects.give_up(slot.mark))

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

    def _take(self, turn: Turn[Any], item: Input) -> bool:
        """Decide one message; False if it was given up."""
        if self._was_decided(item):
            return True
        if self._trials.was_given_up(item):
            return False
        if self._trials.is_exhausted(item):
            self._give_up(turn, item)
            return False
        turn.forget += self._trials.forgotten(item)
        if isinstance(item.message, Due):
            self._decide_due(turn, item, item.message)
        else:
            self.ledger.decide(turn, item, self._services.clock.now())
        return True

    def _give_up(self, turn: Turn[Any], item: Input) -> None:
        """To the dead letters. A ring that was given up rings later once more, and is counted anew; but not one that
        ended whole processes: no process rings it again.
        """
        fatal = self._unclean and isinstance(item.message, Due)
        if fatal:
            self._given_up.append(self._trials.give_up(item))
        self.ledger.give_up(turn, item, TRIES, _WHY_ENDED if self._unclean else _WHY_FAILED, for_good=fatal)
        self._services.around.observer.dead_lettered(self.ledger.kind.name)
        if isinstance(item.message, Due) and not fatal:
            self._alarms.ring_again(item.keys[0], item.message)

    def _decide_due(self, turn: Turn[Any], item: Input, due: Due) -> None:
        now = self._services.clock.now()
        key = item.keys[0]
        if self._alarms.rang(key, due):
            self._services.clock.at_least(due.at)
            self.ledger.decide(turn, item._replace(cause=self.ledger.cause_for(key, "")), max(now, due.at))

    # -- after the commit ----------------------------------------------------------------------------------------
    def _follow(self, keys: Iterable[str]) -> None:
        """Have timers and effects be what the states of these entities ask for."""
        now = self._services.clock.now()
        for key in keys:
            state = self.ledger.states.get(key)
            due = None if state is None else self.ledger.kind.decider.due(state)
            self._alarms.arm(key, due, now)
            self._runner.reconcile(key, self._wanted(key), partial(self.ledger.cause_for, key))
        self._runner.launch()

    def _wanted(self, key: str) -> Sequence[Any]:
        state = self.ledger.states.get(key)
        return () if state is None else self.ledger.kind.decider.outstanding(state)
