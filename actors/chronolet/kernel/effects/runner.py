"""Running what the states ask for: one effect for each subject of an entity, one-shots with a time-out, standing ones
again.

Comes in: `outstanding` of an entity after each commit. Goes out: effect results as inputs of the host, on whatever
thread they come; and `SlotFreed` when a subject may be looked at again. Next: `host`, which decides the results and
reconciles.

    wanted -> running -> answered (its result waits for the host) -> freed -> looked at again: gone, or run again
                      -> failed, out of time: answered by EffectFailed
                      -> cancelled, fenced, a standing one that ended: freed, looked at again after a pause
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from chronolet.kernel.effects.timers import Timer, Timers
from chronolet.kernel.effects.turns import Workshop
from chronolet.kernel.faults import Faults
from chronolet.kernel.kind import Effect, EffectFailed, Job, Kind, Tended
from chronolet.kernel.observer import Observer, Outcome, Queue
from chronolet.kernel.step.ledger import ENDED_THE_PROCESS, TRIES, Input
from chronolet.kernel.step.suspects import BLAME_SECONDS, PAUSE_SECONDS, PAUSED_FROM, Suspects, mark_of
from chronolet_schemas.envelope import START, Signal

PROGRESS_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""A standing effect that ran for so long begins with the first pause again."""


class Fenced(Exception):  # noqa: N818 - the state of the caller
    """The effect may not touch the outside any more: cancelled, or the process's lease is not known to be valid."""


class Permit(Protocol):
    """The lease, as effects see it."""

    def valid(self) -> bool:
        """Whether the process may act now."""


class SlotFreed(NamedTuple):
    """Tells the host that an effect ended without an answer: cancelled, fenced, or standing and yet over."""

    slot: Slot
    error: str = ""
    ran_seconds: float = 0.0


class LookAgain(NamedTuple):
    """Tells the host that the pause of a subject is over."""

    key: str
    subject: str


class Outlived(NamedTuple):
    """Tells the host that an effect has run for so long that it will not end the process any more."""

    slot: Slot


class Hold(NamedTuple):
    """A wish that failed and waits for its next try."""

    intent: str
    timer: Timer


class EffectInput(NamedTuple):
    """A result on its way to the host, with the slot that it frees once it is decided."""

    slot: Slot
    item: Input


class Surroundings(NamedTuple):
    """What all effects of a host share."""

    workshop: Workshop
    timers: Timers
    permit: Permit
    faults: Faults
    observer: Observer
    deliver: Callable[[EffectInput | SlotFreed | LookAgain | Outlived | Input], None]
    token: str = ""
    """Of the shard whose effects these are."""


class Slot:
    """One effect at work. It is the `EffectContext` that its worker is given."""

    def __init__(
        self,
        around: Surroundings,
        kind: str,
        key: str,
        effect: Effect,
        *,
        job: Job | Tended,
        cause: str,
        standing: bool,
    ) -> None:
        self.kind = kind
        self.key = key
        self.effect = effect
        self.standing = standing
        self.mark = ""
        """Names it among the suspects, while the process may end of it."""
        self.lane = (kind, job.lane(effect) if isinstance(job, Job) and job.lane else "")
        self.at_once = job.at_once if isinstance(job, Job) else None
        self.rank = job.rank(effect) if isinstance(job, Job) and job.rank else ()
        self.beside = 0
        self.cancelled = threading.Event()
        self._around = around
        self._place = f"{kind}/{key} {effect.subject}"
        self._job = job
        self._cause = cause
        self._over = threading.Lock()  # taken once, by whoever ends the slot: its worker, or its time-out
        self._asked = time.monotonic()
        self._turn = threading.Lock()
        self._has_turn = False
        self._abandoned = False
        self._deadline: Timer | None = None
        self._started = 0.0
        self._sent_at = -PROGRESS_SECONDS
        self._stop: Callable[[], None] | None = None

    # -- what a worker sees --------------------------------------------------------------------------------------
    @property
    def entity(self) -> str:
        return self.key

    @property
    def cause(self) -> str:
        return self._cause

    @property
    def token(self) -> str:
        return self._around.token

    def fence(self, point: str) -> None:
        """See `EffectContext.fence`."""
        if self.cancelled.is_set() or not self._around.permit.valid():
            raise Fenced(point)
        self._around.faults.point(f"effect/before {point} {self._place}")

    def done(self, point: str) -> None:
        """See `EffectContext.done`."""
        self._around.faults.point(f"effect/after {point} {self._place}")

    def send(self, signal: Signal, *, cause: str = "") -> None:
        """See `EffectContext.send`. Of a one-shot's progress, what comes within five seconds of the last is dropped."""
        now = time.monotonic()
        if self.cancelled.is_set() or (not self.standing and now - self._sent_at < PROGRESS_SECONDS):
            return
        self._sent_at = now
        self._around.deliver(self._input(signal, cause or self._cause))

    # -- its life ------------------------------------------------------------------------------------------------
    def queued(self, queue: Queue) -> None:
        """See `Waiting.queued`."""
        self._around.observer.effect_queued(self.kind, self.key, self._cause, queue)

    def launch(self) -> None:
        """Start the worker's thread, and a one-shot's time; one that is tended has no thread. Where none can be had,
        the effect fails like one whose worker raises: its caller is not disturbed.
        """
        self._has_turn = not self.standing
        if self._has_turn:
            waited = time.monotonic() - self._asked
            self._around.observer.effect_waited(self.kind, self.key, self._cause, waited)
        if isinstance(self._job, Tended):
            self._tend(self._job)
            return
        try:
            self._start_thread(self._job)
        except Exception as error:  # noqa: BLE001 - as for a worker
            self._begin()
            self._failed(error)

    def cancel(self) -> None:
        """It is not wanted any more."""
        self.cancelled.set()
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()
            self._end("cancelled", None, "")
        elif not self.standing and self._around.workshop.withdraw(self):
            waited = time.monotonic() - self._asked
            self._around.observer.effect_withdrawn(self.kind, self.key, self._cause, waited)
            # What comes next about this subject does not wait for the turn of one that nobody wants.
            self._around.deliver(SlotFreed(self))

    def _start_thread(self, job: Job) -> None:
        """Raises RuntimeError where there are no more threads, or no memory for one."""
        if not self.standing:
            bound = job.timeout_seconds
            seconds = bound(self.effect) if callable(bound) else bound
            self._deadline = self._around.timers.after(seconds, self._expire)
        name = f"{self.kind}/{self.key} {type(self.effect).__name__}"
        threading.Thread(target=self._work, args=(job,), name=name, daemon=True).start()

    def _tend(self, job: Tended) -> None:
        self._begin()
        try:
            self._stop = job.begin(self.effect, self, self._failed)
        except Exception as error:  # noqa: BLE001 - as for a worker
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self._end("failed", None, f"{type(error).__name__}: {error}")

    def _begin(self) -> None:
        self._started = time.monotonic()
        self._around.observer.effect_started(self.kind, type(self.effect).__name__)

    def _work(self, job: Job) -> None:
        self._begin()
        try:
            self._check_wanted()
            result = job.run(self.effect, self)
        except Fenced:
            self._end("cancelled" if self.cancelled.is_set() else "fenced", None, "")
        except Exception as error:  # noqa: BLE001 - whatever a worker raises is told to its decider
            self._failed(error)
        else:
            self._end("done", result, "it ended without an answer")

    def _check_wanted(self) -> None:
        if self.cancelled.is_set():  # while it waited for a thread
            raise Fenced(self.effect.intent)

    def _expire(self) -> None:
        self.cancelled.set()
        self._end("timed_out", None, "it did not end in time")

    def _end(self, outcome: Outcome, result: Signal | None, error: str) -> None:
        if not self._over.acquire(blocking=False):
            return
        if self._deadline is not None:
            self._deadline.cancel()
        seconds = time.monotonic() - self._started
        if not self.standing:
            self._measured(result, seconds)
            if self._abandoned or outcome in ("cancelled", "fenced", "timed_out"):
                self.leave()
        self._around.observer.effect_done(self.kind, type(self.effect).__name__, seconds, outcome)
        if outcome in ("cancelled", "fenced"):
            self._around.deliver(SlotFreed(self))
        elif self.standing:
            self._around.deliver(SlotFreed(self, "" if self.cancelled.is_set() else error, seconds))
        else:
            signal = result or self._failure(error, timed_out=outcome == "timed_out")
            self._around.deliver(EffectInput(self, self._input(signal, self._cause)))

    def _measured(self, result: Signal | None, seconds: float) -> None:
        if result is None or not isinstance(self._job, Job) or self._job.measure is None:
            return
        what = self._job.measure(self.effect, result)
        if what and self._has_turn:
            self._around.workshop.took(self, what, seconds)

    def leave(self) -> None:
        """Give the turn back, once: by then whatever follows from the answer is queued and can take it."""
        with self._turn:
            had, self._has_turn = self._has_turn, False
        if had:
            self._around.workshop.left(self)

    def abandon(self) -> None:
        """Its host is gone: nobody decides its answer."""
        self._abandoned = True
        if self._over.locked():
            self.leave()

    def failed(self, error: str) -> EffectInput:
        """The effect's failure on its way to the host, in place of an answer that nobody could decide."""
        return EffectInput(self, self._input(self._failure(error, timed_out=False), self._cause))

    def _failure(self, error: str, *, timed_out: bool) -> EffectFailed:
        effect = self.effect
        return EffectFailed(
            effect=type(effect).__name__, subject=effect.subject, intent=effect.intent, error=error, timed_out=timed_out
        )

    def _input(self, signal: Signal, cause: str) -> Input:
        return Input("signal", START, (self.key,), signal, cause, f"{self.kind}.{type(signal).__name__}")


class EffectRunner:
    """The effects of one host; called by the host's own thread only. `watching` says whether what begins is marked."""

    def __init__(self, kind: Kind[Any], around: Surroundings, suspects: Suspects, watching: Callable[[], bool]) -> None:
        self._kind = kind
        self._around = around
        self._suspects = suspects
        self._watching = watching
        self._to_mark: list[Slot] = []
        self._suspected: deque[Slot] = deque()
        self._alone: Slot | None = None
        self._rested: set[str] = set()
        self._slots: dict[str, dict[str, Slot]] = {}
        self._pauses: dict[tuple[str, str, str], float] = {}
        self._held: dict[str, dict[str, Hold]] = {}

    def reconcile(self, key: str, wanted: Sequence[Effect], cause_for: Callable[[str], str]) -> None:
        """Start what is missing, cancel what vanished or changed its intent."""
        by_subject = {effect.subject: effect for effect in wanted}
        slots = self._slots.get(key, {})
        for subject, slot in slots.items():
            effect = by_subject.get(subject)
            if effect is None or effect.intent != slot.effect.intent:
                slot.cancel()
        self._drop_holds(key, by_subject)
        held = self._held.get(key, {})
        for subject, effect in by_subject.items():
            if subject not in slots and subject not in held:
                self._start(key, effect, cause_for(subject))

    def next_pause(self, slot: Slot, ran_seconds: float = 0.0) -> float:
        """How long to wait, in seconds, before this very wish is tried again; doubles from time to time."""
        wish = (slot.key, slot.effect.subject, slot.effect.intent)
        pause = FIRST_PAUSE_SECONDS if ran_seconds > STEADY_SECONDS else self._pauses.get(wish, FIRST_PAUSE_SECONDS)
        self._pauses[wish] = min(pause * 2, LONGEST_PAUSE_SECONDS)
        return pause

    def settle(self, slot: Slot, wanted: Sequence[Effect], pause: float) -> None:
        """A slot's effect is over and what it answered is decided. The same wish, still open, waits for its pause."""
        subject, intent = slot.effect.subject, slot.effect.intent
        slots = self._slots.get(slot.key, {})
        if slots.get(subject) is slot:
            del slots[subject]
        self.absolve(slot)
        if not slots:
            self._slots.pop(slot.key, None)
        if not any(effect.subject == subject and effect.intent == intent for effect in wanted):
            self._pauses.pop((slot.key, subject, intent), None)
        elif pause:
            self._hold(slot, pause)

    def release(self, again: LookAgain) -> None:
        """The pause is over."""
        self._held.get(again.key, {}).pop(again.subject, None)

    def launch(self) -> None:
        """Mark what is to be marked, and start it; of those that are suspected, one at a time."""
        fresh, self._to_mark = self._to_mark, []
        if fresh:
            self._suspects.begin([slot.mark for slot in fresh])
            for slot in fresh:
                self._submit_marked(slot)
        while self._alone is None and self._suspected:
            slot = self._suspected.popleft()
            if slot.cancelled.is_set():
                self._around.deliver(SlotFreed(slot))
                continue
            self._suspects.begin([slot.mark])
            self._alone = slot
            self._submit_marked(slot)

    def absolve(self, slot: Slot) -> None:
        """It has ended, or has run for long enough: the next suspect may begin."""
        if self._alone is slot:
            self._alone = None

    def runs(self, slot: Slot) -> bool:
        """Whether this very slot is at work."""
        return self._slots.get(slot.key, {}).get(slot.effect.subject) is slot

    def counted(self, wanted: Sequence[Effect]) -> Sequence[Effect]:
        """Those of the effects that are marked when a process begins after an unclean end: one-shots that do their own
        work. One with a lane of its own waits for others, and a process that ends meanwhile did not end of it.
        """
        return [one for one in wanted if (job := self._kind.effects.get(type(one))) is not None and job.lane is None]

    def stop(self) -> None:
        """Cancel everything; the host no longer listens."""
        for held in self._held.values():
            for hold in held.values():
                hold.timer.cancel()
        for slots in self._slots.values():
            for slot in slots.values():
                slot.cancel()
                slot.abandon()

    def _drop_holds(self, key: str, wanted: Mapping[str, Effect]) -> None:
        """A pause is for one wish: another one about the same subject does not wait for it."""
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
        slot = Slot(self._around, self._kind.name, key, effect, job=job, cause=cause, standing=standing)
        self._slots.setdefault(key, {})[effect.subject] = slot
        if standing:
            slot.launch()
        elif (self._watching() or self._suspects.known()) and self.counted([effect]):
            self._suspect(slot)
        else:
            self._around.workshop.submit(slot)

    def _suspect(self, slot: Slot) -> None:
        slot.mark = mark_of(slot.key, slot.effect)
        ended = self._suspects.ended(slot.mark)
        if ended >= TRIES:
            self._around.deliver(slot.failed(ENDED_THE_PROCESS))
        elif ended >= PAUSED_FROM and slot.mark not in self._rested:
            self._rested.add(slot.mark)
            del self._slots[slot.key][slot.effect.subject]
            self._hold(slot, PAUSE_SECONDS)
        elif ended:
            self._suspected.append(slot)
        else:
            self._to_mark.append(slot)

    def _submit_marked(self, slot: Slot) -> None:
        self._around.timers.after(BLAME_SECONDS, lambda: self._around.deliver(Outlived(slot)))
        self._around.workshop.submit(slot)

    def _hold(self, slot: Slot, seconds: float) -> None:
        again = LookAgain(slot.key, slot.effect.subject)
        timer = self._around.timers.after(seconds, lambda: self._around.deliver(again))
        self._held.setdefault(slot.key, {})[slot.effect.subject] = Hold(slot.effect.intent, timer)
