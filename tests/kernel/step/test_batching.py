"""Batches of log entries: adjacent entries become one input, other items keep their place, and none is lost."""

from __future__ import annotations

from typing import Any

from chronolet.kernel.effects.slot import PauseOver
from chronolet.kernel.step.batching import batched
from chronolet.kernel.step.input import Input
from chronolet_schemas.envelope import START, Event, Position, Signal
from chronolet_schemas.times import Stamp


class Flood(Event, frozen=True, kw_only=True):
    number: int


class Single(Event, frozen=True, kw_only=True):
    number: int


class Floods(Signal, frozen=True, kw_only=True):
    events: tuple[tuple[Stamp, Flood], ...]


BATCHES: Any = {Flood: lambda events: Floods(events=tuple(events))}


def entry(number: int, kind: type[Event] = Flood, keys: tuple[str, ...] = ("node",), source: Any = "log") -> Input:
    at = Position(1_000 + number, number)
    return Input(source, at, keys, kind(number=number), str(at), f"x.{kind.__name__}@1", data=bytes([number]))


def numbers(item: Input) -> list[int]:
    assert isinstance(item.message, Floods)
    assert all(at.position.n == event.number for at, event in item.message.events)
    return [event.number for _, event in item.message.events]


def test_adjacent_entries_become_one_input_consumed_as_the_last() -> None:
    (one,) = batched(BATCHES, [entry(n) for n in (1, 2, 3)], START)
    assert numbers(one) == [1, 2, 3]
    assert (one.at, one.cause, one.data, one.identity()) == (Position(1_003, 3), "1003-3", b"\3", "log:1003-3")


def test_other_items_split_a_batch_and_keep_their_place() -> None:
    pause_over = PauseOver("node", "sink/web")
    found = batched(
        BATCHES, [entry(1), entry(2), entry(3, Single), pause_over, pause_over, entry(4), entry(5, keys=("b",))], START
    )
    assert [numbers(found[0]), found[1], found[2], found[3]] == [[1, 2], entry(3, Single), pause_over, pause_over]
    assert [numbers(one) for one in found[4:]] == [[4], [5]]


def test_decided_entries_and_other_items_are_not_batched() -> None:
    items = [entry(1), entry(2), entry(3), entry(4, source="signal")]
    found = batched(BATCHES, items, Position(1_002, 2))
    assert found[:2] == items[:2]
    assert numbers(found[2]) == [3]
    assert found[3] == items[3]


def test_a_kind_without_batches_gets_entries_one_by_one() -> None:
    items = [entry(1), entry(2)]
    assert batched({}, items, START) == items
