"""Turns of one-shots: how many of a lane are at work at a time, and which of those that wait is next.

Comes in: slots that are to be launched. Goes out: calls of their `launch`, now or when there is room. Next: `effects`.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from chronolet.kernel.effects.pace import Pace
from chronolet.kernel.effects.timers import Timer
from chronolet.kernel.observer import Queue

LaneName = tuple[str, str]
_NAMED = 3
"""So many of those at work are named to one that has to wait."""


class Waiting(Protocol):
    """A one-shot, as its lane sees it."""

    lane: LaneName
    key: str
    """Whose work it is."""
    at_once: int | Pace | None
    """How many of the lane are at work at a time; None: as many as in any lane."""
    rank: tuple[Any, ...]
    """Its place among those that wait: the smallest is next, of the same the one that came first."""
    beside: int
    """How many of its lane were at work beside it, at most, since it was launched."""

    def queued(self, queue: Queue) -> None:
        """It has to wait; called once more before its launch, with how many others went first. Called while nothing
        else happens in the workshop: returns at once.
        """

    def launch(self) -> None:
        """Start it; raises nothing. `Workshop.left` is called once, when its turn is over, also if it cannot start."""


class Lane:
    """One-shots that share a limit."""

    def __init__(self, pace: Pace | None) -> None:
        self.pace = pace
        self.at_work: list[Waiting] = []
        self.waiting: list[tuple[tuple[Any, ...], int, Waiting]] = []
        self.queues: dict[Waiting, tuple[Queue, int]] = {}
        """What stood before each that waits, and how many had begun by then."""
        self.begun = 0
        self.head_start: Timer | None = None
        """Runs while a batch that has just begun may not use the whole limit."""
        self.ended = 0
        """How many have been at work since the lane was idle."""
        self.patience: dict[Waiting, Timer] = {}
        """Of each that is at work in a lane with a Pace: rings when it has been for too long."""
        self.late: set[Waiting] = set()
        """Those for which it has rung: they may hang, and nobody waits for them."""

    def beside(self) -> int:
        """How many are at work and not late."""
        return self.active - len(self.late)

    def has_room(self, slot: Waiting, limit: int) -> bool:
        """Whether one more may be at work. During a head start it is one, and one more for each that has ended. In
        place of late ones others are, up to the Pace's bound for that.
        """
        if self.head_start is not None and self.active > self.ended:
            return False
        bound = slot.at_once.most_with_late if isinstance(slot.at_once, Pace) else limit
        return self.beside() < limit and (not self.late or self.active < bound)

    def tell_pace(self) -> None:
        """Whether any wait, called when that may have changed."""
        if self.pace is not None:
            self.pace.waits(waiting=bool(self.waiting))

    @property
    def active(self) -> int:
        return len(self.at_work)

    def queue(self, entry: tuple[tuple[Any, ...], int, Waiting], allowed: int) -> None:
        """An entry has to wait."""
        queue = Queue(
            at_work=self.active,
            allowed=allowed,
            ahead=sum(one < entry for one in self.waiting),
            holders=tuple(one.key for one in self.at_work[:_NAMED]),
        )
        self.queues[entry[2]] = queue, self.begun
        entry[2].queued(queue)

    def begin(self, slot: Waiting) -> None:
        """It is at work from now on."""
        queue, before = self.queues.pop(slot, (None, 0))
        if queue is not None:
            slot.queued(msgspec.structs.replace(queue, ahead=self.begun - before))
        slot.beside = self.beside()
        self.at_work.append(slot)
        for one in self.at_work:
            one.beside = max(one.beside, self.beside() - (one not in self.late))
        self.begun += 1


class Workshop:
    """At most `limit` of each lane at work, or as many as its jobs say. `after` calls back in so many seconds."""

    def __init__(self, after: Callable[[float, Callable[[], None]], Timer], limit: int = 16) -> None:
        self._after = after
        self._limit = limit
        self._lanes: dict[LaneName, Lane] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def submit(self, slot: Waiting) -> None:
        """Launch the slot, now or in its turn."""
        with self._lock:
            lane = self._lanes.get(slot.lane)
            if lane is None:
                lane = self._lanes[slot.lane] = Lane(slot.at_once if isinstance(slot.at_once, Pace) else None)
                self._give_head_start(lane, slot)
            entry = (slot.rank, next(self._numbers), slot)
            heapq.heappush(lane.waiting, entry)
            ready = self._ready(lane)
            if slot not in ready:
                lane.queue(entry, self._limit_of(slot))
        self._launch(ready)

    def withdraw(self, slot: Waiting) -> bool:
        """Whether the slot still waited; then it is never launched."""
        with self._lock:
            lane = self._lanes.get(slot.lane)
            entry = next((one for one in lane.waiting if one[2] is slot), None) if lane else None
            if lane is None or entry is None:
                return False
            lane.waiting.remove(entry)
            lane.queues.pop(slot, None)
            heapq.heapify(lane.waiting)
            lane.tell_pace()
            return True

    def took(self, slot: Waiting, what: str, seconds: float) -> None:
        """How long the slot's work took, for a lane that goes by that; called before its turn is over."""
        if isinstance(slot.at_once, Pace):
            with self._lock:
                if slot.lane not in self._lanes:
                    return  # its turn was taken back meanwhile, for its host has failed
                slot.at_once.ended(what, seconds, beside=slot.beside)

    def left(self, slot: Waiting) -> None:
        """The slot's turn is over."""
        with self._lock:
            lane = self._lanes[slot.lane]
            self._leave(lane, slot)
            ready = self._ready(lane)
            if not lane.active:
                self._end_head_start(lane)
                del self._lanes[slot.lane]  # lanes come and go with what they are named for
        self._launch(ready)

    def _give_head_start(self, lane: Lane, slot: Waiting) -> None:
        if not isinstance(slot.at_once, Pace) or not slot.at_once.head_start_seconds:
            return

        def over() -> None:
            with self._lock:
                self._end_head_start(lane)
                ready = self._ready(lane)
            self._launch(ready)

        lane.head_start = self._after(slot.at_once.head_start_seconds, over)

    def _be_patient(self, lane: Lane, slot: Waiting) -> None:
        if not isinstance(slot.at_once, Pace):
            return

        def over() -> None:
            with self._lock:
                if lane.patience.pop(slot, None) is None:
                    return  # it has just ended
                lane.late.add(slot)
                ready = self._ready(lane)
            self._launch(ready)

        lane.patience[slot] = self._after(slot.at_once.patience_seconds, over)

    def _leave(self, lane: Lane, slot: Waiting) -> None:
        lane.at_work.remove(slot)
        lane.ended += 1
        lane.late.discard(slot)
        if (timer := lane.patience.pop(slot, None)) is not None:
            timer.cancel()

    def _end_head_start(self, lane: Lane) -> None:
        if lane.head_start is not None:
            lane.head_start.cancel()
            lane.head_start = None

    def _ready(self, lane: Lane) -> list[Waiting]:
        ready = []
        while lane.waiting and lane.has_room(lane.waiting[0][2], self._limit_of(lane.waiting[0][2])):
            slot = heapq.heappop(lane.waiting)[2]
            lane.begin(slot)
            ready.append(slot)
            self._be_patient(lane, slot)
        lane.tell_pace()
        return ready

    def _launch(self, ready: list[Waiting]) -> None:
        for one in ready:
            one.launch()

    def _limit_of(self, slot: Waiting) -> int:
        limit = slot.at_once.limit if isinstance(slot.at_once, Pace) else slot.at_once
        return limit or self._limit
