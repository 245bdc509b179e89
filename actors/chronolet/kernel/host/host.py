"""The host: the pykka actor that owns one shard in one process. Only the host decides for the shard's entities.

Input: log entries and commands from the reader, signals from effects, `Due` from timers. Output: steps to the store;
after each commit, the effects and timers that the states request. If a host fails, its supervisor starts a new one,
which replays the log. Next: `ledger` (builds a step), `shard_writer` (commits it), `effects`, `entity_timers`,
`supervisor`.

    one turn:  take up to 100 items -> decide and fold -> encode -> commit -> apply states -> effects, timers
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import pykka

from chronolet.kernel.clock import Clock
from chronolet.kernel.effects.runner import EffectRunner
from chronolet.kernel.effects.slot import Cleared, EffectInput, PauseOver, RunnerDependencies, Slot, SlotFreed
from chronolet.kernel.host.entity_timers import EntityTimers
from chronolet.kernel.host.host_handle import HostHandle, Item, message_of
from chronolet.kernel.kind import Due, EffectFailed
from chronolet.kernel.step.batching import batched
from chronolet.kernel.step.input import Input
from chronolet.kernel.step.ledger import MAX_ATTEMPTS, Turn, touched
from chronolet.kernel.step.retry_counts import RetryCounts
from chronolet.kernel.step.shard_writer import ShardWriter
from chronolet.kernel.step.suspects import GIVEN_UP, Suspects, mark_of
from chronolet.kernel.storage.store import Store
from chronolet_schemas import kernel

BATCH = 100
"""Maximum number of items in one turn."""

_WHY_FAILED = "failed three times, see the preceding HostRestarted events"
_WHY_ENDED = "failed three times (see HostRestarted events), or the process ended three times while deciding it"


class Woken(NamedTuple):
    """A wake-up. It is the only message in a host's pykka inbox, because items wait in the host's `Inbox`."""


class Services(NamedTuple):
    """Services shared by all hosts of a process."""

    store: Store
    clock: Clock
    shared: RunnerDependencies
    """Dependencies of the effects of all hosts. Each host sets its own `deliver` and `token`."""
    new_id: Callable[[], str]
    failed: Callable[[HostHandle, BaseException], None]
    """Called once, on the host's thread, when a host fails."""
    left: Callable[[HostHandle], None]
    """Called once, on the host's thread, when a host has handed over its shard and waits to be stopped."""


class Host(pykka.ThreadingActor):
    """Owns one shard. Other code communicates with a host through its `HostHandle`."""

    use_daemon_thread = True

    def __init__(self, handle: HostHandle, services: Services) -> None:
        super().__init__()
        recovered, shared = handle.recovered, services.shared
        self.handle = handle
        self.ledger = handle.ledger
        self.inbox = handle.inbox
        self.stopping = handle.stopping
        self._services = services
        self._timing = timing = shared.timing
        self._writer = ShardWriter(
            self.ledger, services.store, recovered.snapshot_at, handle.stopping, services.new_id, timing=timing
        )
        self._retries = RetryCounts(
            recovered.attempts,
            self._writer.count_attempts,
            careful=recovered.careful,
            careful_messages=timing.careful_messages,
        )
        self._suspects = Suspects(recovered.attempts, self._writer.count_attempts, unclean=recovered.unclean)
        own = shared._replace(deliver=self.inbox.put, token=self.ledger.token)
        self._runner = EffectRunner(
            self.ledger.kind, own, self._suspects, self._retries.counting, recovered.effect_notes
        )
        self._leaves_until = 0.0
        """When effects that have not finished are cut off, because the shard moves; 0 while it does not."""
        self._unclean = recovered.unclean
        self._recovered_attempts = bool(recovered.attempts)
        self._backlog = len(recovered.backlog)
        self._given_up: list[str] = []
        """Marks of effects and identities of messages that are given up permanently and whose dead letters are in the
        current turn.
        """
        self._forget: list[str] = []
        self._timers = EntityTimers(
            self.ledger.kind.name, shared.timers, self.inbox.put, retry_seconds=timing.due_retry_seconds
        )
        self._notes = recovered.notes
        self._dead = recovered.dead
        self._examined = False
        self._begun = False
        self._undecided = len(recovered.backlog)
        """Number of recovered messages that are not decided yet. Effects start when it reaches 0."""
        self.inbox.put(*recovered.backlog)

    # -- pykka ---------------------------------------------------------------------------------------------------
    def on_start(self) -> None:
        """Wake the host. Everything else happens in the first turn: pykka does not report a failure in `on_start`."""
        self.inbox.open(self._wake)
        self.inbox.nudge()

    def on_receive(self, _message: Woken) -> None:
        """Take one turn. If items remain, the host wakes itself again."""
        if self.stopping.is_set():
            return
        if not self._examined:
            self._examine_recovered()
        if self.handle.moves_to and not self._leaves_until:
            self._finish_effects()
        self._begin_if_caught_up()
        self._turn()
        if self._leaves_until and (self._runner.is_idle() or time.monotonic() >= self._leaves_until):
            self._leave()

    def on_stop(self) -> None:
        """Cancel effects and timers, and end every wait for the host's backlog. From now on the host changes nothing
        outside itself.
        """
        self.stopping.set()
        self._runner.stop()
        self._timers.stop()
        self.handle.caught_up.set()

    def on_failure(
        self, _exception_type: type[BaseException] | None, exception_value: BaseException | None, _traceback: Any
    ) -> None:
        """Cancel effects and timers, and report the failure to the supervisor, which decides whether to restart."""
        self.on_stop()
        if exception_value is not None:
            self._services.failed(self.handle, exception_value)

    # -- moving to another process -------------------------------------------------------------------------------
    def _finish_effects(self) -> None:
        """Start nothing any more. Messages are still decided, because results of effects are among them."""
        self._leaves_until = time.monotonic() + self._timing.handover_seconds
        self._services.shared.timers.after(self._timing.handover_seconds, self.inbox.nudge)
        self._runner.finish()

    def _leave(self) -> None:
        """Commit the last step, and report that the shard can be released."""
        self._runner.cut_off()
        self._notes = [*self._notes, kernel.ShardReleased(to=self.handle.moves_to)]
        self._turn()
        self.stopping.set()
        # A host that moves on before its effects have begun passes on what it was left.
        self.handle.left_notes = self._runner.notes if self._begun else self.handle.recovered.effect_notes
        self._services.left(self.handle)

    def _wake(self) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # must not fail the reader, timer or worker that calls this
            self.actor_ref.tell(Woken())

    # -- one turn ------------------------------------------------------------------------------------------------
    def _examine_recovered(self) -> None:
        """Prepare the clock and the attempt counts. Called once, before the first turn."""
        self._examined = True
        observer = self._services.shared.observer
        observer.shard_acquired(self.ledger.shard, self.ledger.states, self.handle.backlog)
        self._services.clock.advance_to_log(self.handle.log_time)
        if self._unclean or self._recovered_attempts:
            self._suspect_recovered()

    def _begin_if_caught_up(self) -> None:
        """Arm timers and start effects once the backlog is decided, because a message in it may withdraw an effect."""
        if not self._begun and not self._undecided:
            self._begun = True
            self._reconcile(list(self.ledger.states))
            self.handle.caught_up.set()

    def _suspect_recovered(self) -> None:
        """Drop counts and marks that no longer apply. If the former owner ended without a handover, also count attempts
        at the next messages, as many as there are messages in the backlog, overdue timers and outstanding effects: one
        of them may have crashed the former owner.
        """
        now, decider = self._services.clock.now(), self.ledger.kind.decider
        outstanding = {key: self.ledger.outstanding(key) for key in self.ledger.states}
        marks = {mark_of(key, one) for key, effects in outstanding.items() for one in self._runner.counted(effects)}
        dues = {key: due for key, state in self.ledger.states.items() if (due := decider.due(state)) is not None}
        timers = {self._timers.message(key, due).identity() for key, due in dues.items()}
        self._forget += (*self._suspects.drop(marks), *self._retries.drop(timers))
        if self._unclean:
            overdue = sum(1 for due in dues.values() if due <= now)
            self._retries.count_next(self._backlog + overdue + len(marks))

    def _turn(self) -> None:
        read_to = self.handle.read_to  # before `take`: everything read up to here is already in the inbox
        counting = self._retries.counting()
        # Notes are committed in a step of their own, so that they are recorded even if a message makes the host fail.
        waiting = self.inbox.take(0 if self._notes else BATCH, self._alone if counting else None)
        if waiting:
            self._services.shared.observer.turn_taken(self.ledger.shard, len(waiting))
        self._undecided = max(0, self._undecided - len(waiting))
        items = batched(self.ledger.kind.batches, waiting, self.ledger.decided_to)
        if counting:
            self._count_attempts(items)
        turn = self.ledger.begin()
        self._add_notes(turn)
        settled = [self._decide(turn, item) for item in items]
        if self.inbox.idle():
            turn.log_cursor = max(turn.log_cursor, read_to)
        if self._needs_step(turn):
            self._commit(turn)
        else:
            self.ledger.passed(turn)
        self._retries.end()
        freed = [one for one in settled if one is not None]
        try:
            for slot, pause in freed:
                self._runner.settle(slot, self.ledger.outstanding(slot.key), pause)
            if self._begun:
                self._reconcile({*touched(turn), *turn.to_reconcile})
        finally:
            for slot, _ in freed:
                slot.leave()
        self._begin_if_caught_up()
        self._writer.snapshot_if_due()
        if self.inbox.rearm():
            self._wake()

    def _alone(self, item: Item) -> bool:
        """Whether an item must be decided in a step of its own."""
        return message_of(item) is not None and self._retries.alone(covered=self._is_covered(item))

    def _count_attempts(self, items: Iterable[Item]) -> None:
        """Count an attempt at each message of a turn that is not decided yet, in one round trip. Unless the shard's
        host has failed in this process, results of marked effects are not counted: the effect's mark covers them, and
        it also survives the end of the process.
        """
        waiting = [(item, one) for item in items if (one := message_of(item)) is not None and not self._is_done(one)]
        counted = [one for item, one in waiting if self._retries.alone(covered=self._is_covered(item))]
        self._retries.begin(counted, covered=len(waiting) - len(counted))

    def _is_covered(self, item: Item) -> bool:
        return isinstance(item, EffectInput) and self._suspects.covers(item.slot.mark)

    def _is_done(self, item: Input) -> bool:
        return self._was_decided(item) or self._retries.was_given_up(item)

    def _was_decided(self, item: Input) -> bool:
        """Whether a message has already been decided: the recovery scan and the reader may both deliver it."""
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

    def _needs_step(self, turn: Turn[Any]) -> bool:
        consumed = turn.mail_cursor > self.ledger.mail_cursor
        return bool(turn.records or turn.dead or turn.forget) or consumed or self._is_behind(turn)

    def _is_behind(self, turn: Turn[Any]) -> bool:
        cursor = self.ledger.log_cursor
        late = turn.log_cursor.n > cursor.n and self._writer.seconds_since_step() > self._timing.behind_seconds
        return late or self.handle.is_far_behind(turn.log_cursor)

    def _commit(self, turn: Turn[Any]) -> None:
        self._writer.commit(turn, self._services.shared.faults, self._services.shared.observer)
        given_up, self._given_up = self._given_up, []
        if given_up:  # after the step: a repeated dead letter is better than a missing one
            self._writer.count_attempts(dict.fromkeys(given_up, GIVEN_UP))

    # -- one item ------------------------------------------------------------------------------------------------
    def _decide(self, turn: Turn[Any], item: Item) -> tuple[Slot, float] | None:
        """Decide one item. Returns the slot that the item frees, if any, with the seconds to wait before its effect is
        retried.
        """
        if isinstance(item, PauseOver):
            self._runner.release(item)
            turn.to_reconcile.append(item.key)
            return None
        if isinstance(item, Cleared):
            if self._runner.runs(item.slot):
                self._clear_mark(turn, item.slot)
                self._runner.clear_suspect(item.slot)
            return None
        if isinstance(item, SlotFreed):
            self._clear_mark(turn, item.slot)
            turn.to_reconcile.append(item.slot.key)
            return item.slot, self._pause_after(turn, item)
        if isinstance(item, EffectInput):
            return self._decide_result(turn, item)
        self._decide_message(turn, item)
        return None

    def _decide_result(self, turn: Turn[Any], result: EffectInput) -> tuple[Slot, float] | None:
        slot = result.slot
        if slot.mark and self._suspects.ended(slot.mark) >= MAX_ATTEMPTS:
            self._give_up_effect(turn, slot)
        else:
            self._clear_mark(turn, slot)
        decided = self._decide_message(turn, result.item)
        if not decided and not isinstance(result.item.message, EffectFailed):
            # The effect stays outstanding, and its next result would make the host fail again: report a failure
            # instead.
            self.inbox.put(slot.failed("the effect's result could not be decided, see the dead letters"))
            return None
        turn.to_reconcile.append(slot.key)
        return slot, self._runner.next_pause(slot) if decided else self._timing.given_up_pause_seconds

    def _clear_mark(self, turn: Turn[Any], slot: Slot) -> None:
        if slot.mark:
            turn.forget += self._suspects.clear(slot.mark)

    def _give_up_effect(self, turn: Turn[Any], slot: Slot) -> None:
        """Send the effect to the dead letters, but only once. Its decider receives EffectFailed each time it requests
        the effect.
        """
        if not self._suspects.was_given_up(slot.mark):
            self.ledger.give_up_effect(turn, slot.key, slot.effect, slot.mark, slot.cause)
            self._services.shared.observer.dead_lettered(self.ledger.kind.name)
            self._given_up.append(self._suspects.give_up(slot.mark))

    def _pause_after(self, turn: Turn[Any], freed: SlotFreed) -> float:
        """Return the seconds to wait before retrying an effect that ended without a result. A failure is recorded as an
        event.
        """
        if freed.slot.cancelled.is_set() and not freed.slot.lapsed:
            return 0.0
        if not freed.error:
            return self._timing.fenced_pause_seconds  # the lease failed, not the effect: no exponential back-off
        pause = self._runner.next_pause(freed.slot, freed.ran_seconds)
        about = f"{self.ledger.kind.name}/{freed.slot.key} {freed.slot.effect.subject}"
        name = type(freed.slot.effect).__name__
        milliseconds = round(pause * 1000)
        failing = kernel.EffectsFailing(effect=name, about=about, error=freed.error, retry_in_milliseconds=milliseconds)
        self.ledger.note(turn, failing)
        return pause

    def _decide_message(self, turn: Turn[Any], item: Input) -> bool:
        """Decide one message. Returns False if the message is given up or was given up earlier."""
        if self._was_decided(item):
            return True
        if self._retries.was_given_up(item):
            return False
        if self._retries.is_exhausted(item):
            self._give_up(turn, item)
            return False
        turn.forget += self._retries.forgotten(item)
        if isinstance(item.message, Due):
            self._decide_due(turn, item, item.message)
        else:
            self.ledger.decide(turn, item, self._services.clock.now())
        return True

    def _give_up(self, turn: Turn[Any], item: Input) -> None:
        """Send the message to the dead letters. A `Due` is delivered again later, with a new attempt count, unless it
        has ended processes: it is then never delivered again.
        """
        fatal = self._unclean and isinstance(item.message, Due)
        if fatal:
            self._given_up.append(self._retries.give_up(item))
        self.ledger.give_up(turn, item, MAX_ATTEMPTS, _WHY_ENDED if self._unclean else _WHY_FAILED, for_good=fatal)
        self._services.shared.observer.dead_lettered(self.ledger.kind.name)
        if isinstance(item.message, Due) and not fatal:
            self._timers.retry(item.keys[0], item.message)

    def _decide_due(self, turn: Turn[Any], item: Input, due: Due) -> None:
        now = self._services.clock.now()
        key = item.keys[0]
        if self._timers.accept(key, due):
            self._services.clock.at_least(due.at)
            self.ledger.decide(turn, item._replace(cause=self.ledger.cause_for(key, "")), max(now, due.at))

    # -- after the commit ----------------------------------------------------------------------------------------
    def _reconcile(self, keys: Iterable[str]) -> None:
        """Make timers and effects match the states of these entities."""
        now = self._services.clock.now()
        for key in keys:
            state = self.ledger.states.get(key)
            due = None if state is None else self.ledger.kind.decider.due(state)
            self._timers.arm(key, due, now)
            self._runner.reconcile(key, self.ledger.outstanding(key), partial(self.ledger.cause_for, key))
        self._runner.launch()
