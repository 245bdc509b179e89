"""Entries that a kind wants to have together: neighbours as one input, nothing else moved, nothing lost."""

from __future__ import annotations

from typing import Any

from chronolet.kernel.effects.runner import LookAgain
from chronolet.kernel.step.batching import batched
from chronolet.kernel.step.ledger import Input
from chronolet_schemas.envelope import START, Event, Position, Signal


class Flood(Event, frozen=True, kw_only=True):
    number: int


class Single(Event, frozen=True, kw_only=True):
    number: int


class Floods(Signal, frozen=True, kw_only=True):
    told: tuple[tuple[Position, Flood], ...]


BATCHES: Any = {Flood: lambda told: Floods(told=tuple(told))}


def entry(number: int, kind: type[Event] = Flood, keys: tuple[str, ...] = ("node",), source: Any = "log") -> Input:
    at = Position(1_000 + number, number)
    return Input(source, at, keys, kind(number=number), str(at), f"x.{kind.__name__}@1", data=bytes([number]))


def numbers(item: Input) -> list[int]:
    assert isinstance(item.message, Floods)
    assert all(at.n == event.number for at, event in item.message.told)
    return [event.number for _, event in item.message.told]


def test_neighbours_become_one_that_is_consumed_as_the_last() -> None:
    (one,) = batched(BATCHES, [entry(n) for n in (1, 2, 3)], START)
    assert numbers(one) == [1, 2, 3]
    assert (one.at, one.cause, one.data, one.identity()) == (Position(1_003, 3), "1003-3", b"\3", "log:1003-3")


def test_what_stands_between_parts_them_and_stays_where_it_is() -> None:
    ring = LookAgain("node", "sink/web")
    found = batched(BATCHES, [entry(1), entry(2), entry(3, Single), ring, ring, entry(4), entry(5, keys=("b",))], START)
    assert [numbers(found[0]), found[1], found[2], found[3]] == [[1, 2], entry(3, Single), ring, ring]
    assert [numbers(one) for one in found[4:]] == [[4], [5]]


def test_what_was_decided_before_and_what_is_no_entry_stays_as_it_is() -> None:
    items = [entry(1), entry(2), entry(3), entry(4, source="signal")]
    found = batched(BATCHES, items, Position(1_002, 2))
    assert found[:2] == items[:2]
    assert numbers(found[2]) == [3]
    assert found[3] == items[3]


def test_a_kind_without_batches_gets_entries_one_by_one() -> None:
    items = [entry(1), entry(2)]
    assert batched({}, items, START) == items
