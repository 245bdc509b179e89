"""Lanes of one-shots: the order in which they start, their limits, and that each one that ends makes room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chronolet.kernel.effects.lanes import Lanes
from chronolet.kernel.effects.pace import GAIN, MEMORY_SECONDS, MOST_LATE, PATIENCE_SECONDS, Pace
from chronolet.kernel.effects.timers import Timer
from chronolet.kernel.observer import Queue


class Clock:
    """Timers that fire when the test calls `fire`."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._timers: list[tuple[float, Timer]] = []

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        self.seconds.append(seconds)
        timer = Timer(action, lambda: None)
        self._timers.append((seconds, timer))
        return timer

    def running(self, after: float) -> int:
        """Return the number of pending timers with this delay."""
        return sum(seconds == after and timer.action is not None for seconds, timer in self._timers)

    def fire(self, after: float = PATIENCE_SECONDS) -> None:
        """Fire all timers with this delay."""
        timers, self._timers = self._timers, []
        for seconds, timer in timers:
            if seconds != after:
                self._timers.append((seconds, timer))
            elif timer.action is not None:
                timer.action()


class Piece:
    """A one-shot that only records its launch and its place in the queue."""

    def __init__(self, name: str, launched: list[str], *, limit: int | Pace | None = 1, priority: Any = ()) -> None:
        self.name = self.key = name
        self.queues: list[Queue] = []
        self.lane = ("pod", "start")
        self.limit = limit
        self.priority = priority
        self.concurrent = 0
        self._launched = launched

    def queued(self, queue: Queue) -> None:
        self.queues.append(queue)

    def launch(self) -> None:
        self._launched.append(self.name)


class RecordingPace(Pace):
    """A Pace that records, for each job that ended, how many others ran concurrently."""

    def __init__(self, most: int, first: int) -> None:
        super().__init__(most, first)
        self.concurrent: list[int] = []

    def ended(self, name: str, seconds: float, *, concurrent: int) -> None:
        self.concurrent.append(concurrent)
        super().ended(name, seconds, concurrent=concurrent)


def test_the_smallest_priority_starts_first_and_equals_start_in_order_of_arrival() -> None:
    launched: list[str] = []
    lanes = Lanes(Clock().after)
    priorities = {"now": 9, "late": 8, "second": 1, "first": 0, "third": 1}
    pieces = [Piece(name, launched, priority=(priority,)) for name, priority in priorities.items()]
    for piece in pieces:
        lanes.submit(piece)
    assert launched == ["now"]
    for _ in range(4):
        lanes.release(next(piece for piece in pieces if piece.name == launched[-1]))
    assert launched == ["now", "first", "second", "third", "late"]


def test_a_queued_one_shot_learns_its_place_in_the_queue() -> None:
    launched: list[str] = []
    lanes = Lanes(Clock().after)
    pieces = [
        Piece(name, launched, limit=2, priority=(priority,))
        for name, priority in zip("abcde", (1, 2, 5, 3, 4), strict=True)
    ]
    for piece in pieces:
        lanes.submit(piece)
    assert [piece.queues for piece in pieces[:2]] == [[], []]
    before = {"at_work": 2, "allowed": 2, "holders": ("a", "b")}
    assert [piece.queues for piece in pieces[2:]] == [[Queue(ahead=ahead, **before)] for ahead in (0, 0, 1)]
    lanes.release(pieces[0])
    lanes.release(pieces[1])
    lanes.release(pieces[3])
    assert launched == ["a", "b", "d", "e", "c"]
    assert [piece.queues[1:] for piece in pieces[2:]] == [[Queue(ahead=ahead, **before)] for ahead in (2, 0, 1)]
    last = Piece("f", launched, limit=2, priority=(9,))
    lanes.submit(last)
    assert last.queues == [Queue(at_work=2, allowed=2, holders=("e", "c"))]


def test_a_withdrawn_one_shot_is_never_launched() -> None:
    launched: list[str] = []
    lanes = Lanes(Clock().after)
    pieces = [Piece(name, launched) for name in ("a", "b", "c")]
    for piece in pieces:
        lanes.submit(piece)
    assert lanes.withdraw(pieces[1])
    assert not lanes.withdraw(pieces[1])
    assert not lanes.withdraw(pieces[0])
    lanes.release(pieces[0])
    assert launched == ["a", "c"]


def test_another_one_shot_runs_in_place_of_one_that_may_hang() -> None:
    launched: list[str] = []
    clock, pace = Clock(), Pace(32, first=2)
    lanes = Lanes(clock.after)
    pieces = [Piece(str(number), launched, limit=pace) for number in range(MOST_LATE + 4)]
    for piece in pieces:
        lanes.submit(piece)
    assert launched == ["0", "1"]
    clock.fire()
    assert launched == ["0", "1", "2", "3"], "the first two are late, and two others run in their place"
    for _ in range(MOST_LATE):
        clock.fire()
    assert len(launched) == 2 + MOST_LATE, "but no further ones"
    lanes.release(pieces[0])
    assert len(launched) == 2 + MOST_LATE + 1
    for piece in pieces[1:]:
        lanes.release(piece)
    assert launched == [piece.name for piece in pieces]
    clock.fire()
    lanes.submit(Piece("next", launched, limit=pace))
    assert launched[-1] == "next"


@pytest.mark.parametrize(("most", "launches"), [(32, 24), (16, 16), (14, 14)])
def test_a_one_shot_that_may_hang_does_not_count_against_a_high_limit_either(most: int, launches: int) -> None:
    launched: list[str] = []
    clock, pace = Clock(), Pace(most, first=16)
    lanes = Lanes(clock.after)
    for number in range(40):
        lanes.submit(Piece(str(number), launched, limit=pace))
    assert len(launched) == min(16, most)
    clock.fire()
    assert len(launched) == launches, "eight more, but not more than may run in all"


def test_one_shots_that_may_hang_do_not_count_as_concurrent() -> None:
    launched: list[str] = []
    clock, pace = Clock(), RecordingPace(32, first=2)
    lanes = Lanes(clock.after)
    hangs, other = (Piece(name, launched, limit=pace) for name in ("hangs", "other"))
    lanes.submit(hangs)
    clock.fire()
    lanes.submit(other)
    lanes.record_duration(other, "start", 1.0)
    lanes.record_duration(hangs, "start", 60.0)
    assert pace.concurrent == [0, 1]


def test_a_one_shot_ran_alone_only_if_no_other_ran_concurrently() -> None:
    pace = RecordingPace(32, first=3)
    lanes = Lanes(Clock().after)
    outer, inner, other = (Piece(name, [], limit=pace) for name in ("outer", "inner", "other"))
    lanes.submit(outer)
    for piece in (inner, other):
        lanes.submit(piece)
    for piece in (inner, other):
        lanes.release(piece)
    lanes.record_duration(outer, "start", 1.0)
    lanes.release(outer)
    lanes.submit(other)
    lanes.record_duration(other, "start", 1.0)
    assert pace.concurrent == [2, 0]


def test_the_duration_of_a_one_shot_whose_turn_was_taken_back_is_ignored() -> None:
    piece = Piece("a", [], limit=Pace(8, first=1))
    lanes = Lanes(Clock().after)
    lanes.submit(piece)
    lanes.release(piece)
    lanes.record_duration(piece, "start", 1.0)


def test_a_growing_limit_starts_several_one_shots() -> None:
    launched: list[str] = []
    now = [0.0]
    pace = Pace(32, first=2, clock=lambda: now[0])
    lanes = Lanes(Clock().after)
    for _ in range(3):
        alone = Piece("alone", [], limit=pace)
        lanes.submit(alone)
        lanes.record_duration(alone, "start", 0.4)
        lanes.release(alone)
    pieces = [Piece(str(number), launched, limit=pace) for number in range(40)]
    for piece in pieces:
        lanes.submit(piece)
    assert len(launched) == 2
    for piece in pieces[:20]:
        now[0] += 0.1
        lanes.record_duration(piece, "start", 0.4)
        lanes.release(piece)
    assert len(launched) == 20 + pace.limit
    assert pace.limit == 4 * GAIN, "the server carried four concurrent jobs"


def test_the_first_of_a_batch_has_a_head_start() -> None:
    launched: list[str] = []
    clock = Clock()
    pace = Pace(8, first=2, head_start_seconds=0.5)
    lanes = Lanes(clock.after)
    pieces = [Piece(str(number), launched, limit=pace) for number in range(4)]
    for piece in pieces:
        lanes.submit(piece)
    assert launched == ["0"]
    assert clock.seconds.count(0.5) == 1
    clock.fire(0.5)
    assert launched == ["0", "1"]
    lanes.release(pieces[0])
    assert launched == ["0", "1", "2"]


def test_a_one_shot_that_waits_for_a_head_start_learns_the_limit_after_it() -> None:
    lanes = Lanes(Clock().after)
    pieces = [Piece(name, [], limit=Pace(8, first=2, head_start_seconds=0.5)) for name in "ab"]
    for piece in pieces:
        lanes.submit(piece)
    assert pieces[1].queues == [Queue(at_work=1, allowed=2, holders=("a",))]


def test_during_a_head_start_each_job_that_ends_makes_room_for_two() -> None:
    launched: list[str] = []
    clock = Clock()
    lanes = Lanes(clock.after)
    pieces = [Piece(str(number), launched, limit=Pace(8, first=4, head_start_seconds=0.5)) for number in range(9)]
    for piece in pieces:
        lanes.submit(piece)
    lanes.release(pieces[0])
    assert launched == list("012")
    lanes.release(pieces[1])
    assert launched == list("01234")
    clock.fire(0.5)
    assert launched == list("012345")


def test_a_head_start_leads_to_the_limit_and_no_further() -> None:
    launched: list[str] = []
    lanes = Lanes(Clock().after)
    pieces = [Piece(str(number), launched, limit=Pace(8, first=3, head_start_seconds=0.5)) for number in range(9)]
    for piece in pieces:
        lanes.submit(piece)
    for piece in pieces[:5]:
        lanes.release(piece)
    assert launched == list("01234567")


def test_a_head_start_ends_when_nothing_runs() -> None:
    clock = Clock()
    lanes = Lanes(clock.after)
    piece = Piece("a", [], limit=Pace(8, first=3, head_start_seconds=0.5))
    lanes.submit(piece)
    assert clock.running(0.5) == 1
    lanes.release(piece)
    assert not clock.running(0.5)


def test_only_a_lane_that_was_idle_gives_a_head_start() -> None:
    launched: list[str] = []
    clock = Clock()
    pace = Pace(8, first=2, head_start_seconds=0.5)
    lanes = Lanes(clock.after)
    first, second, third = (Piece(str(number), launched, limit=pace) for number in range(3))
    lanes.submit(first)
    clock.fire(0.5)
    lanes.submit(second)
    assert launched == ["0", "1"]
    lanes.release(first)
    lanes.release(second)
    lanes.submit(third)
    assert clock.seconds.count(0.5) == 2


def test_a_pace_is_notified_when_no_one_shot_waits() -> None:
    now = [0.0]
    pace = Pace(8, first=2, clock=lambda: now[0])
    lanes = Lanes(Clock().after)
    pieces = [Piece(str(number), [], limit=pace) for number in range(3)]
    for withdrawn in (True, False):
        for piece in pieces:
            lanes.submit(piece)
        now[0] += MEMORY_SECONDS
        assert pace.limit == 1
        if withdrawn:
            lanes.withdraw(pieces[2])
        else:
            for piece in pieces[:2]:
                lanes.release(piece)
        assert pace.limit == 2
        for piece in pieces[: 2 if withdrawn else 0]:
            lanes.release(piece)
