"""Turns: the order in which they come, and that each is given back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chronolet.kernel.observer import Queue
from chronolet.kernel.pace import GAIN, MEMORY_SECONDS, MOST_LATE, PATIENCE_SECONDS, Pace
from chronolet.kernel.timers import Timer
from chronolet.kernel.workshop import Workshop


class Clock:
    """Rings when it is told to."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._timers: list[tuple[float, Timer]] = []

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        self.seconds.append(seconds)
        timer = Timer(action, lambda: None)
        self._timers.append((seconds, timer))
        return timer

    def running(self, after: float) -> int:
        """How many are still to ring after so many seconds."""
        return sum(seconds == after and timer.action is not None for seconds, timer in self._timers)

    def ring(self, after: float = PATIENCE_SECONDS) -> None:
        """What was to ring after so many seconds."""
        timers, self._timers = self._timers, []
        for seconds, timer in timers:
            if seconds != after:
                self._timers.append((seconds, timer))
            elif timer.action is not None:
                timer.action()


class Piece:
    """A one-shot that only says when it is launched."""

    def __init__(self, name: str, launched: list[str], *, at_once: int | Pace | None = 1, rank: Any = ()) -> None:
        self.name = self.key = name
        self.queues: list[Queue] = []
        self.lane = ("pod", "start")
        self.at_once = at_once
        self.rank = rank
        self.beside = 0
        self._launched = launched

    def queued(self, queue: Queue) -> None:
        self.queues.append(queue)

    def launch(self) -> None:
        self._launched.append(self.name)


class Noted(Pace):
    """Notes how many were at work beside each that ended."""

    def __init__(self, most: int, first: int) -> None:
        super().__init__(most, first)
        self.beside: list[int] = []

    def ended(self, what: str, seconds: float, *, beside: int) -> None:
        self.beside.append(beside)
        super().ended(what, seconds, beside=beside)


def test_the_smallest_rank_is_next_and_of_the_same_the_one_that_came_first() -> None:
    launched: list[str] = []
    workshop = Workshop(Clock().after)
    ranks = {"now": 9, "late": 8, "second": 1, "first": 0, "third": 1}
    pieces = [Piece(name, launched, rank=(rank,)) for name, rank in ranks.items()]
    for piece in pieces:
        workshop.submit(piece)
    assert launched == ["now"]
    for _ in range(4):
        workshop.left(next(piece for piece in pieces if piece.name == launched[-1]))
    assert launched == ["now", "first", "second", "third", "late"]


def test_one_that_has_to_wait_learns_what_stands_before_it() -> None:
    launched: list[str] = []
    workshop = Workshop(Clock().after)
    pieces = [
        Piece(name, launched, at_once=2, rank=(rank,)) for name, rank in zip("abcde", (1, 2, 5, 3, 4), strict=True)
    ]
    for piece in pieces:
        workshop.submit(piece)
    assert [piece.queues for piece in pieces[:2]] == [[], []]
    before = {"at_work": 2, "allowed": 2, "holders": ("a", "b")}
    assert [piece.queues for piece in pieces[2:]] == [[Queue(ahead=ahead, **before)] for ahead in (0, 0, 1)]
    workshop.left(pieces[0])
    workshop.left(pieces[1])
    workshop.left(pieces[3])
    assert launched == ["a", "b", "d", "e", "c"]
    assert [piece.queues[1:] for piece in pieces[2:]] == [[Queue(ahead=ahead, **before)] for ahead in (2, 0, 1)]
    last = Piece("f", launched, at_once=2, rank=(9,))
    workshop.submit(last)
    assert last.queues == [Queue(at_work=2, allowed=2, holders=("e", "c"))]


def test_what_is_withdrawn_is_never_launched() -> None:
    launched: list[str] = []
    workshop = Workshop(Clock().after)
    pieces = [Piece(name, launched) for name in ("a", "b", "c")]
    for piece in pieces:
        workshop.submit(piece)
    assert workshop.withdraw(pieces[1])
    assert not workshop.withdraw(pieces[1])
    assert not workshop.withdraw(pieces[0])
    workshop.left(pieces[0])
    assert launched == ["a", "c"]


def test_what_may_hang_keeps_nobody_waiting() -> None:
    launched: list[str] = []
    clock, pace = Clock(), Pace(32, first=2)
    workshop = Workshop(clock.after)
    pieces = [Piece(str(number), launched, at_once=pace) for number in range(MOST_LATE + 4)]
    for piece in pieces:
        workshop.submit(piece)
    assert launched == ["0", "1"]
    clock.ring()
    assert launched == ["0", "1", "2", "3"], "the first two are late, and two others are at work in their place"
    for _ in range(MOST_LATE):
        clock.ring()
    assert len(launched) == 2 + MOST_LATE, "but not ever more of them"
    workshop.left(pieces[0])
    assert len(launched) == 2 + MOST_LATE + 1
    for piece in pieces[1:]:
        workshop.left(piece)
    assert launched == [piece.name for piece in pieces]
    clock.ring()
    workshop.submit(Piece("next", launched, at_once=pace))
    assert launched[-1] == "next"


@pytest.mark.parametrize(("most", "launches"), [(32, 24), (16, 16), (14, 14)])
def test_what_may_hang_does_not_count_against_a_high_limit_either(most: int, launches: int) -> None:
    launched: list[str] = []
    clock, pace = Clock(), Pace(most, first=16)
    workshop = Workshop(clock.after)
    for number in range(40):
        workshop.submit(Piece(str(number), launched, at_once=pace))
    assert len(launched) == min(16, most)
    clock.ring()
    assert len(launched) == launches, "eight more, as long as that is not more than may be at work in all"


def test_what_may_hang_is_not_beside_the_others() -> None:
    launched: list[str] = []
    clock, pace = Clock(), Noted(32, first=2)
    workshop = Workshop(clock.after)
    hangs, other = (Piece(name, launched, at_once=pace) for name in ("hangs", "other"))
    workshop.submit(hangs)
    clock.ring()
    workshop.submit(other)
    workshop.took(other, "start", 1.0)
    workshop.took(hangs, "start", 60.0)
    assert pace.beside == [0, 1]


def test_only_what_had_nothing_beside_it_all_the_time_ran_alone() -> None:
    pace = Noted(32, first=3)
    workshop = Workshop(Clock().after)
    outer, inner, other = (Piece(name, [], at_once=pace) for name in ("outer", "inner", "other"))
    workshop.submit(outer)
    for piece in (inner, other):
        workshop.submit(piece)
    for piece in (inner, other):
        workshop.left(piece)
    workshop.took(outer, "start", 1.0)
    workshop.left(outer)
    workshop.submit(other)
    workshop.took(other, "start", 1.0)
    assert pace.beside == [2, 0]


def test_the_end_of_one_whose_turn_was_taken_back_is_no_failure() -> None:
    piece = Piece("a", [], at_once=Pace(8, first=1))
    workshop = Workshop(Clock().after)
    workshop.submit(piece)
    workshop.left(piece)
    workshop.took(piece, "start", 1.0)


def test_a_limit_that_grows_lets_several_begin() -> None:
    launched: list[str] = []
    now = [0.0]
    pace = Pace(32, first=2, clock=lambda: now[0])
    workshop = Workshop(Clock().after)
    for _ in range(3):
        alone = Piece("alone", [], at_once=pace)
        workshop.submit(alone)
        workshop.took(alone, "start", 0.4)
        workshop.left(alone)
    pieces = [Piece(str(number), launched, at_once=pace) for number in range(40)]
    for piece in pieces:
        workshop.submit(piece)
    assert len(launched) == 2
    for piece in pieces[:20]:
        now[0] += 0.1
        workshop.took(piece, "start", 0.4)
        workshop.left(piece)
    assert len(launched) == 20 + pace.limit
    assert pace.limit == 4 * GAIN, "four were carried at once"


def test_the_first_of_a_batch_has_a_head_start() -> None:
    launched: list[str] = []
    clock = Clock()
    pace = Pace(8, first=2, head_start_seconds=0.5)
    workshop = Workshop(clock.after)
    pieces = [Piece(str(number), launched, at_once=pace) for number in range(4)]
    for piece in pieces:
        workshop.submit(piece)
    assert launched == ["0"]
    assert clock.seconds.count(0.5) == 1
    clock.ring(0.5)
    assert launched == ["0", "1"]
    workshop.left(pieces[0])
    assert launched == ["0", "1", "2"]


def test_one_that_waits_for_the_head_start_of_another_learns_of_the_limit_that_follows() -> None:
    workshop = Workshop(Clock().after)
    pieces = [Piece(name, [], at_once=Pace(8, first=2, head_start_seconds=0.5)) for name in "ab"]
    for piece in pieces:
        workshop.submit(piece)
    assert pieces[1].queues == [Queue(at_work=1, allowed=2, holders=("a",))]


def test_during_a_head_start_each_job_that_ends_makes_room_for_two() -> None:
    launched: list[str] = []
    clock = Clock()
    workshop = Workshop(clock.after)
    pieces = [Piece(str(number), launched, at_once=Pace(8, first=4, head_start_seconds=0.5)) for number in range(9)]
    for piece in pieces:
        workshop.submit(piece)
    workshop.left(pieces[0])
    assert launched == list("012")
    workshop.left(pieces[1])
    assert launched == list("01234")
    clock.ring(0.5)
    assert launched == list("012345")


def test_a_head_start_leads_to_the_limit_and_no_further() -> None:
    launched: list[str] = []
    workshop = Workshop(Clock().after)
    pieces = [Piece(str(number), launched, at_once=Pace(8, first=3, head_start_seconds=0.5)) for number in range(9)]
    for piece in pieces:
        workshop.submit(piece)
    for piece in pieces[:5]:
        workshop.left(piece)
    assert launched == list("01234567")


def test_a_head_start_is_over_when_nothing_is_at_work() -> None:
    clock = Clock()
    workshop = Workshop(clock.after)
    piece = Piece("a", [], at_once=Pace(8, first=3, head_start_seconds=0.5))
    workshop.submit(piece)
    assert clock.running(0.5) == 1
    workshop.left(piece)
    assert not clock.running(0.5)


def test_only_a_lane_that_was_idle_gives_a_head_start() -> None:
    launched: list[str] = []
    clock = Clock()
    pace = Pace(8, first=2, head_start_seconds=0.5)
    workshop = Workshop(clock.after)
    first, second, third = (Piece(str(number), launched, at_once=pace) for number in range(3))
    workshop.submit(first)
    clock.ring(0.5)
    workshop.submit(second)
    assert launched == ["0", "1"]
    workshop.left(first)
    workshop.left(second)
    workshop.submit(third)
    assert clock.seconds.count(0.5) == 2


def test_a_pace_learns_when_the_waiting_ends() -> None:
    now = [0.0]
    pace = Pace(8, first=2, clock=lambda: now[0])
    workshop = Workshop(Clock().after)
    pieces = [Piece(str(number), [], at_once=pace) for number in range(3)]
    for withdrawn in (True, False):
        for piece in pieces:
            workshop.submit(piece)
        now[0] += MEMORY_SECONDS
        assert pace.limit == 1
        if withdrawn:
            workshop.withdraw(pieces[2])
        else:
            for piece in pieces[:2]:
                workshop.left(piece)
        assert pace.limit == 2
        for piece in pieces[: 2 if withdrawn else 0]:
            workshop.left(piece)
