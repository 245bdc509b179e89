"""Runs the effects that the states request: at most one per subject of an entity. One-shots have a time-out; standing
effects are restarted when they end.

Input: an entity's `outstanding` effects after each commit. Output: the results of effects as inputs of the host, from
any thread; and `SlotFreed` when a subject may be reconciled again. Next: `slot`, one effect in progress; `host`, which
decides the results and reconciles.

    wanted -> running -> done (its result waits for the host) -> freed -> reconciled: removed, or run again
                      -> raised or timed out: its result is EffectFailed
                      -> cancelled: freed, reconciled immediately
                      -> fenced, or standing and ended: freed, reconciled after a pause
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from chronolet.kernel.effects.slot import Cleared, PauseOver, RunnerDependencies, Slot, SlotFreed
from chronolet.kernel.effects.timers import Timer
from chronolet.kernel.kind import Effect, Kind
from chronolet.kernel.step.ledger import ENDED_THE_PROCESS, MAX_ATTEMPTS
from chronolet.kernel.step.suspects import PAUSED_FROM, Suspects, mark_of

NoteKey = tuple[str, str, str]
"""Identifies an effect across owners of its shard: entity, subject, intent."""


class Hold(NamedTuple):
    """A failed effect waiting out its back-off."""

    intent: str
    timer: Timer


class EffectRunner:
    """Runs the effects of one host. Called only on the host's own thread. `watching` returns whether starting
    effects must be marked even if there are no known suspects.
    """

    def __init__(
        self,
        kind: Kind[Any],
        shared: RunnerDependencies,
        suspects: Suspects,
        watching: Callable[[], bool],
        notes: Mapping[NoteKey, str] | None = None,
    ) -> None:
        """`notes`: what the effects of the shard's former owner have left, by entity, subject and intent."""
        self._kind = kind
        self._shared = shared
        self._timing = shared.timing
        self._suspects = suspects
        self._watching = watching
        self._to_mark: list[Slot] = []
        self._suspected: deque[Slot] = deque()
        self._alone: Slot | None = None
        self._rested: set[str] = set()
        self._slots: dict[str, dict[str, Slot]] = {}
        self._pauses: dict[tuple[str, str, str], float] = {}
        self._held: dict[str, dict[str, Hold]] = {}
        self._resume = dict(notes or {})
        self._finishing = False
        self.notes: dict[NoteKey, str] = {}
        """What finished effects have left for the same effects at the shard's next owner."""

    def reconcile(self, key: str, wanted: Sequence[Effect], cause_for: Callable[[str], str]) -> None:
        """Start missing effects; cancel those that are no longer wanted or have a new intent. `cause_for` maps a
        subject to the cause of its effect.
        """
        by_subject = {effect.subject: effect for effect in wanted}
        slots = self._slots.get(key, {})
        for subject, slot in slots.items():
            effect = by_subject.get(subject)
            if effect is None or effect.intent != slot.effect.intent:
                slot.cancel()
        self._drop_holds(key, by_subject)
        if self._finishing:
            return
        held = self._held.get(key, {})
        for subject, effect in by_subject.items():
            if subject not in slots and subject not in held:
                self._start(key, effect, cause_for(subject))

    def next_pause(self, slot: Slot, ran_seconds: float = 0.0) -> float:
        """Return the seconds to wait before the effect's subject and intent are retried. The pause doubles with each
        call, up to a maximum, unless the effect ran for a long time (`ran_seconds`).
        """
        timing, request = self._timing, (slot.key, slot.effect.subject, slot.effect.intent)
        pause = first = timing.effect_first_pause_seconds
        if ran_seconds <= timing.effect_steady_seconds:
            pause = self._pauses.get(request, first)
        self._pauses[request] = min(pause * 2, timing.effect_longest_pause_seconds)
        return pause

    def settle(self, slot: Slot, wanted: Sequence[Effect], pause: float) -> None:
        """Free the slot of an effect that has ended and whose result, if any, is decided. If the intent is still
        wanted, it is not retried for `pause` seconds.
        """
        subject, intent = slot.effect.subject, slot.effect.intent
        slots = self._slots.get(slot.key, {})
        if slots.get(subject) is slot:
            del slots[subject]
        if slot.note:
            self.notes[slot.key, subject, intent] = slot.note
        self.clear_suspect(slot)
        if not slots:
            self._slots.pop(slot.key, None)
        if not any(effect.subject == subject and effect.intent == intent for effect in wanted):
            self._pauses.pop((slot.key, subject, intent), None)
        elif pause and not self._finishing:
            self._hold(slot, pause)

    def release(self, pause: PauseOver) -> None:
        """End a subject's pause."""
        self._held.get(pause.key, {}).pop(pause.subject, None)

    def launch(self) -> None:
        """Mark and start the effects that need a mark. Suspects start one at a time."""
        fresh, self._to_mark = self._to_mark, []
        if fresh:
            self._suspects.begin([slot.mark for slot in fresh])
            for slot in fresh:
                self._submit_marked(slot)
        while self._alone is None and self._suspected:
            slot = self._suspected.popleft()
            if slot.cancelled.is_set():
                self._shared.deliver(SlotFreed(slot))
                continue
            self._suspects.begin([slot.mark])
            self._alone = slot
            self._submit_marked(slot)

    def clear_suspect(self, slot: Slot) -> None:
        """Let the next suspect start: this one has ended, or has been running for long enough."""
        if self._alone is slot:
            self._alone = None

    def runs(self, slot: Slot) -> bool:
        """Whether this slot is the current one for its subject."""
        return self._slots.get(slot.key, {}).get(slot.effect.subject) is slot

    def counted(self, wanted: Sequence[Effect]) -> Sequence[Effect]:
        """Return the effects to mark when a process starts after an unclean end of the previous one: one-shots without
        a lane. A one-shot with a lane may have been waiting for others when the process ended, and is then not the
        cause.
        """
        return [one for one in wanted if (job := self._kind.effects.get(type(one))) is not None and job.lane is None]

    def finish(self) -> None:
        """Start nothing any more, and let the effects in progress end: the shard moves to another process."""
        self._finishing = True
        waiting = [*self._to_mark, *self._suspected]
        self._to_mark, self._suspected = [], deque()
        for slot in waiting:
            self._shared.deliver(SlotFreed(slot))
        for slots in self._slots.values():
            for slot in slots.values():
                if slot not in waiting:
                    slot.finish()

    def is_idle(self) -> bool:
        """Whether no effect is in progress."""
        return not self._slots

    def cut_off(self) -> None:
        """Keep the notes of the effects that have not finished in time."""
        unfinished = [slot for slots in self._slots.values() for slot in slots.values()]
        self.notes |= {
            (slot.key, slot.effect.subject, slot.effect.intent): slot.note for slot in unfinished if slot.note
        }

    def stop(self) -> None:
        """Cancel all effects and pauses. The host will decide no more results."""
        for held in self._held.values():
            for hold in held.values():
                hold.timer.cancel()
        for slots in self._slots.values():
            for slot in slots.values():
                slot.cancel()
                slot.abandon()

    def _drop_holds(self, key: str, wanted: Mapping[str, Effect]) -> None:
        """Drop the pauses of intents that are no longer wanted: a pause does not apply to the subject's next intent."""
        held = self._held.get(key, {})
        for subject, hold in list(held.items()):
            effect = wanted.get(subject)
            if effect is None or effect.intent != hold.intent:
                hold.timer.cancel()
                del held[subject]
                self._pauses.pop((key, subject, hold.intent), None)
        if not held:
            self._held.pop(key, None)

    def _start(self, key: str, effect: Effect, cause: str) -> None:
        one_shot = self._kind.effects.get(type(effect))
        standing = one_shot is None
        job = one_shot or self._kind.standing[type(effect)]
        resume = self._resume.pop((key, effect.subject, effect.intent), "")
        slot = Slot(self._shared, self._kind.name, key, effect, job=job, cause=cause, standing=standing, resume=resume)
        self._slots.setdefault(key, {})[effect.subject] = slot
        if standing:
            slot.launch()
        elif (self._watching() or self._suspects.known()) and self.counted([effect]):
            self._suspect(slot)
        else:
            self._shared.lanes.submit(slot)

    def _suspect(self, slot: Slot) -> None:
        slot.mark = mark_of(slot.key, slot.effect)
        ended = self._suspects.ended(slot.mark)
        if ended >= MAX_ATTEMPTS:
            self._shared.deliver(slot.failed(ENDED_THE_PROCESS))
        elif ended >= PAUSED_FROM and slot.mark not in self._rested:
            self._rested.add(slot.mark)
            del self._slots[slot.key][slot.effect.subject]
            self._hold(slot, self._timing.suspect_pause_seconds)
        elif ended:
            self._suspected.append(slot)
        else:
            self._to_mark.append(slot)

    def _submit_marked(self, slot: Slot) -> None:
        seconds = self._timing.suspect_seconds
        self._shared.timers.after(seconds, lambda: self._shared.deliver(Cleared(slot)))
        self._shared.lanes.submit(slot)

    def _hold(self, slot: Slot, seconds: float) -> None:
        over = PauseOver(slot.key, slot.effect.subject)
        timer = self._shared.timers.after(seconds, lambda: self._shared.deliver(over))
        self._held.setdefault(slot.key, {})[slot.effect.subject] = Hold(slot.effect.intent, timer)
