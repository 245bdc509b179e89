"""Whose turn it is: nobody waits longer than his share makes him, whatever the others do with theirs."""

from __future__ import annotations

import pytest

from chronolet.adapters.probes.scheduling.fair_queue import FairQueue


def everybody(_: str) -> bool:
    return True


def test_equals_are_served_in_order() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(4):
        queue.add(f"p{number}", number)
    assert len(queue) == 4
    assert [queue.take(everybody) for _ in range(5)] == [0, 1, 2, 3, None]


def test_one_that_used_little_goes_before_those_that_used_much() -> None:
    queue: FairQueue[str] = FairQueue()
    for owner in ("greedy", "modest"):
        queue.add(owner, owner)
        assert queue.take(everybody) == owner
    queue.used("greedy", 2.0)
    queue.used("modest", 0.05)
    for owner in ("greedy", "modest", "new"):
        queue.add(owner, owner)
    assert [queue.take(everybody) for _ in range(3)] == ["new", "modest", "greedy"]


@pytest.mark.parametrize("greedy", [1, 10, 100])
def test_however_many_are_greedy_one_that_is_not_has_its_share(greedy: int) -> None:
    """One place. Each of them keeps it for a second and asks again at once; the other for a twentieth of one."""
    queue: FairQueue[str] = FairQueue()
    seconds = {f"g{number}": 1.0 for number in range(greedy)} | {"modest": 0.05}
    for owner in seconds:
        queue.add(owner, owner)
    clock, served = 0.0, []
    while clock < 4 * greedy:
        owner = queue.take(everybody)
        assert owner is not None
        clock += seconds[owner]
        queue.used(owner, seconds[owner])
        served.append((clock, owner))
        queue.add(owner, owner)
    times = [at for at, owner in served if owner == "modest"]
    assert len(times) >= 2 * 20 - 2, "twenty times as often as a greedy one, after the first round"
    assert {owner for _, owner in served} == seconds.keys(), "and the greedy ones have theirs"


def test_those_that_may_not_are_passed_over_and_keep_their_turn() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.add("busy", 1)
    queue.add("free", 2)
    assert queue.take(lambda owner: owner != "busy") == 2
    assert queue.take(lambda owner: owner != "busy") is None
    assert queue.take(everybody) == 1


def test_one_that_is_dropped_has_no_turn() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.add("a", 1)
    queue.add("b", 2)
    queue.drop(1)
    queue.drop(3)
    assert queue.clear() == [2]
    assert queue.take(everybody) is None


def test_what_was_used_is_forgotten_where_nobody_had_to_wait() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.used("greedy", 100.0)
    queue.used("", 100.0)
    queue.rest()
    for owner in ("greedy", "modest"):
        queue.add(owner, owner)
    assert queue.take(everybody) == "greedy"


def test_no_more_is_remembered_than_can_matter() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(2_000):
        queue.add(f"p{number}", "x")
        queue.take(everybody)
        queue.used(f"p{number}", 0.0)
    assert queue.known <= 257
