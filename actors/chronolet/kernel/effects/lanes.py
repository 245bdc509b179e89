"""Lanes: queues of one-shot effects, each with a concurrency limit and an order in which waiting one-shots start.

Input: slots to launch. Output: calls to their `launch`, immediately or once there is room. Next: `slot`.
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
"""Maximum number of running one-shots whose entities a `Queue` names."""


class OneShot(Protocol):
    """The interface through which a lane uses a one-shot effect."""

    lane: LaneName
    key: str
    """Key of the entity that requested the effect."""
    limit: int | Pace | None
    """Concurrency limit of the lane; None means the default limit."""
    priority: tuple[Any, ...]
    """Priority in the lane's queue: the smallest starts first; equal ones start in order of arrival."""
    concurrent: int
    """Highest number of other one-shots in the lane that have run at the same time as this one, excluding late ones."""

    def queued(self, queue: Queue) -> None:
        """Notify the one-shot that it has to wait. Called again just before its launch, with the number of one-shots
        that started while it waited. Called with the lock of the lanes held, so it must return immediately.
        """

    def launch(self) -> None:
        """Start the one-shot. Must not raise. The one-shot calls `Lanes.release` once when its turn ends, even if it
        cannot start.
        """


class Lane:
    """A queue of one-shots that share a concurrency limit."""

    def __init__(self, pace: Pace | None) -> None:
        self.pace = pace
        self.running: list[OneShot] = []
        self.waiting: list[tuple[tuple[Any, ...], int, OneShot]] = []
        self.queues: dict[OneShot, tuple[Queue, int]] = {}
        """For each waiting one-shot: the queue on its arrival, and the value of `begun` at that time."""
        self.begun = 0
        self.head_start: Timer | None = None
        """Timer of the head start: while it is pending, a batch that has just begun may not use the whole limit."""
        self.ended = 0
        """Number of one-shots that have ended since the lane was last idle."""
        self.patience: dict[OneShot, Timer] = {}
        """For each running one-shot in a lane with a Pace: the timer that fires when it has been running for too long.
        """
        self.late: set[OneShot] = set()
        """One-shots that have been running for too long: they may be hung, so they no longer count against the limit.
        """

    def on_time(self) -> int:
        """Return the number of running one-shots that are not late."""
        return self.active - len(self.late)

    def has_room(self, slot: OneShot, limit: int) -> bool:
        """Whether another one-shot may start. During a head start, one may run, plus one for each that has ended. Late
        one-shots do not count against the limit while fewer than the Pace's `most_with_late` run in total.
        """
        if self.head_start is not None and self.active > self.ended:
            return False
        bound = slot.limit.most_with_late if isinstance(slot.limit, Pace) else limit
        return self.on_time() < limit and (not self.late or self.active < bound)

    def update_pace(self) -> None:
        """Report to the Pace whether any one-shot is waiting. Call this whenever that may have changed."""
        if self.pace is not None:
            self.pace.waits(waiting=bool(self.waiting))

    @property
    def active(self) -> int:
        return len(self.running)

    def queue(self, entry: tuple[tuple[Any, ...], int, OneShot], allowed: int) -> None:
        """Record an entry's place in the queue, and notify its one-shot that it has to wait."""
        queue = Queue(
            at_work=self.active,
            allowed=allowed,
            ahead=sum(one < entry for one in self.waiting),
            holders=tuple(one.key for one in self.running[:_NAMED]),
        )
        self.queues[entry[2]] = queue, self.begun
        entry[2].queued(queue)

    def begin(self, slot: OneShot) -> None:
        """Count a one-shot as running."""
        queue, before = self.queues.pop(slot, (None, 0))
        if queue is not None:
            slot.queued(msgspec.structs.replace(queue, ahead=self.begun - before))
        slot.concurrent = self.on_time()
        self.running.append(slot)
        for one in self.running:
            one.concurrent = max(one.concurrent, self.on_time() - (one not in self.late))
        self.begun += 1


class Lanes:
    """Runs at most `limit` one-shots of each lane at a time, unless the lane's jobs set another limit. `after` is
    `Timers.after`.
    """

    def __init__(self, after: Callable[[float, Callable[[], None]], Timer], limit: int = 16) -> None:
        self._after = after
        self._limit = limit
        self._lanes: dict[LaneName, Lane] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def submit(self, slot: OneShot) -> None:
        """Launch a one-shot immediately, or once there is room in its lane."""
        with self._lock:
            lane = self._lanes.get(slot.lane)
            if lane is None:
                lane = self._lanes[slot.lane] = Lane(slot.limit if isinstance(slot.limit, Pace) else None)
                self._give_head_start(lane, slot)
            entry = (slot.priority, next(self._numbers), slot)
            heapq.heappush(lane.waiting, entry)
            ready = self._ready(lane)
            if slot not in ready:
                lane.queue(entry, self._limit_of(slot))
        self._launch(ready)

    def withdraw(self, slot: OneShot) -> bool:
        """Remove a one-shot from its lane's queue, so that it is never launched. Returns False if it is not queued."""
        with self._lock:
            lane = self._lanes.get(slot.lane)
            entry = next((one for one in lane.waiting if one[2] is slot), None) if lane else None
            if lane is None or entry is None:
                return False
            lane.waiting.remove(entry)
            lane.queues.pop(slot, None)
            heapq.heapify(lane.waiting)
            lane.update_pace()
            return True

    def record_duration(self, slot: OneShot, name: str, seconds: float) -> None:
        """Report to the Pace of a one-shot's lane, if any, how long its work took. Call this before its turn ends."""
        if isinstance(slot.limit, Pace):
            with self._lock:
                if slot.lane not in self._lanes:
                    return  # its host has failed, and its turn has ended
                slot.limit.ended(name, seconds, concurrent=slot.concurrent)

    def release(self, slot: OneShot) -> None:
        """End a one-shot's turn, and launch the waiting one-shots for which there is now room."""
        with self._lock:
            lane = self._lanes[slot.lane]
            self._leave(lane, slot)
            ready = self._ready(lane)
            if not lane.active:
                self._end_head_start(lane)
                del self._lanes[slot.lane]  # lane names are unbounded, so an idle lane is dropped
        self._launch(ready)

    def _give_head_start(self, lane: Lane, slot: OneShot) -> None:
        if not isinstance(slot.limit, Pace) or not slot.limit.head_start_seconds:
            return

        def over() -> None:
            with self._lock:
                self._end_head_start(lane)
                ready = self._ready(lane)
            self._launch(ready)

        lane.head_start = self._after(slot.limit.head_start_seconds, over)

    def _start_patience(self, lane: Lane, slot: OneShot) -> None:
        if not isinstance(slot.limit, Pace):
            return

        def over() -> None:
            with self._lock:
                if lane.patience.pop(slot, None) is None:
                    return  # it has just ended
                lane.late.add(slot)
                ready = self._ready(lane)
            self._launch(ready)

        lane.patience[slot] = self._after(slot.limit.patience_seconds, over)

    def _leave(self, lane: Lane, slot: OneShot) -> None:
        lane.running.remove(slot)
        lane.ended += 1
        lane.late.discard(slot)
        if (timer := lane.patience.pop(slot, None)) is not None:
            timer.cancel()

    def _end_head_start(self, lane: Lane) -> None:
        if lane.head_start is not None:
            lane.head_start.cancel()
            lane.head_start = None

    def _ready(self, lane: Lane) -> list[OneShot]:
        ready = []
        while lane.waiting and lane.has_room(lane.waiting[0][2], self._limit_of(lane.waiting[0][2])):
            slot = heapq.heappop(lane.waiting)[2]
            lane.begin(slot)
            ready.append(slot)
            self._start_patience(lane, slot)
        lane.update_pace()
        return ready

    def _launch(self, ready: list[OneShot]) -> None:
        for one in ready:
            one.launch()

    def _limit_of(self, slot: OneShot) -> int:
        limit = slot.limit.limit if isinstance(slot.limit, Pace) else slot.limit
        return limit or self._limit
