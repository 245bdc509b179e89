"""Turns: the order in which they come, and that each is given back."""

from __future__ import annotations

from typing import Any

from chronolet.kernel.pace import Pace
from chronolet.kernel.workshop import Workshop


class Piece:
    """A one-shot that only says when it is launched."""

    def __init__(self, name: str, launched: list[str], *, at_once: int | Pace | None = 1, rank: Any = ()) -> None:
        self.name = name
        self.lane = ("pod", "start")
        self.at_once = at_once
        self.rank = rank
        self.beside = 0
        self._launched = launched

    def launch(self) -> None:
        self._launched.append(self.name)


def test_the_smallest_rank_is_next_and_of_the_same_the_one_that_came_first() -> None:
    launched: list[str] = []
    workshop = Workshop()
    ranks = {"now": 9, "late": 8, "second": 1, "first": 0, "third": 1}
    pieces = [Piece(name, launched, rank=(rank,)) for name, rank in ranks.items()]
    for piece in pieces:
        workshop.submit(piece)
    assert launched == ["now"]
    for _ in range(4):
        workshop.left(next(piece for piece in pieces if piece.name == launched[-1]))
    assert launched == ["now", "first", "second", "third", "late"]


def test_what_is_withdrawn_is_never_launched() -> None:
    launched: list[str] = []
    workshop = Workshop()
    pieces = [Piece(name, launched) for name in ("a", "b", "c")]
    for piece in pieces:
        workshop.submit(piece)
    assert workshop.withdraw(pieces[1])
    assert not workshop.withdraw(pieces[1])
    assert not workshop.withdraw(pieces[0])
    workshop.left(pieces[0])
    assert launched == ["a", "c"]


def test_a_limit_that_grows_lets_several_begin() -> None:
    launched: list[str] = []
    now = [0.0]
    pace = Pace(8, first=2, clock=lambda: now[0])
    workshop = Workshop()
    pieces = [Piece(str(number), launched, at_once=pace) for number in range(40)]
    for piece in pieces:
        workshop.submit(piece)
    assert len(launched) == 2
    for piece in pieces[:20]:
        now[0] += 0.1
        workshop.took(piece, "start", 0.4)
        workshop.left(piece)
    assert len(launched) == 20 + pace.limit
    assert pace.limit == 6, "four were carried at once"
