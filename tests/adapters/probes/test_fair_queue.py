"""Whose turn it is: nobody waits longer than his share makes him, whatever the others do with theirs."""

from __future__ import annotations

import pytest

from chronolet.adapters.probes.scheduling.fair_queue import FairQueue


def everybody(_: str) -> bool:
    return True


def test_equals_are_served_in_order() -> None:
    turns: FairQueue[int] = FairQueue()
    for number in range(4):
        turns.add(f"p{number}", number)
    assert len(turns) == 4
    assert [turns.take(everybody) for _ in range(5)] == [0, 1, 2, 3, None]


def test_one_that_used_little_goes_before_those_that_used_much() -> None:
    turns: FairQueue[str] = FairQueue()
    for who in ("greedy", "modest"):
        turns.add(who, who)
        assert turns.take(everybody) == who
    turns.used("greedy", 2.0)
    turns.used("modest", 0.05)
    for who in ("greedy", "modest", "new"):
        turns.add(who, who)
    assert [turns.take(everybody) for _ in range(3)] == ["new", "modest", "greedy"]


@pytest.mark.parametrize("greedy", [1, 10, 100])
def test_however_many_are_greedy_one_that_is_not_has_its_share(greedy: int) -> None:
    """One place. Each of them keeps it for a second and asks again at once; the other for a twentieth of one."""
    turns: FairQueue[str] = FairQueue()
    seconds = {f"g{number}": 1.0 for number in range(greedy)} | {"modest": 0.05}
    for who in seconds:
        turns.add(who, who)
    clock, served = 0.0, []
    while clock < 4 * greedy:
        who = turns.take(everybody)
        assert who is not None
        clock += seconds[who]
        turns.used(who, seconds[who])
        served.append((clock, who))
        turns.add(who, who)
    times = [at for at, who in served if who == "modest"]
    assert len(times) >= 2 * 20 - 2, "twenty times as often as a greedy one, after the first round"
    assert {who for _, who in served} == seconds.keys(), "and the greedy ones have theirs"


def test_those_that_may_not_are_passed_over_and_keep_their_turn() -> None:
    turns: FairQueue[int] = FairQueue()
    turns.add("busy", 1)
    turns.add("free", 2)
    assert turns.take(lambda who: who != "busy") == 2
    assert turns.take(lambda who: who != "busy") is None
    assert turns.take(everybody) == 1


def test_one_that_is_dropped_has_no_turn() -> None:
    turns: FairQueue[int] = FairQueue()
    turns.add("a", 1)
    turns.add("b", 2)
    turns.drop(1)
    turns.drop(3)
    assert turns.clear() == [2]
    assert turns.take(everybody) is None


def test_what_was_used_is_forgotten_where_nobody_had_to_wait() -> None:
    turns: FairQueue[str] = FairQueue()
    turns.used("greedy", 100.0)
    turns.used("", 100.0)
    turns.rest()
    for who in ("greedy", "modest"):
        turns.add(who, who)
    assert turns.take(everybody) == "greedy"


def test_no_more_is_remembered_than_can_matter() -> None:
    turns: FairQueue[str] = FairQueue()
    for number in range(2_000):
        turns.add(f"p{number}", "x")
        turns.take(everybody)
        turns.used(f"p{number}", 0.0)
    assert turns.known <= 257
