"""Fair queueing: each owner gets its share, no matter what other owners do."""

from __future__ import annotations

import pytest

from chronolet.adapters.probes.scheduling.fair_queue import FairQueue


def anyone(_: str) -> bool:
    return True


def test_equal_owners_are_served_in_order() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(4):
        queue.add(f"p{number}", number)
    assert len(queue) == 4
    assert [queue.take(anyone) for _ in range(5)] == [0, 1, 2, 3, None]


def test_owners_that_used_little_go_first() -> None:
    queue: FairQueue[str] = FairQueue()
    for owner in ("greedy", "modest"):
        queue.add(owner, owner)
        assert queue.take(anyone) == owner
    queue.used("greedy", 2.0)
    queue.used("modest", 0.05)
    for owner in ("greedy", "modest", "new"):
        queue.add(owner, owner)
    assert [queue.take(anyone) for _ in range(3)] == ["new", "modest", "greedy"]


@pytest.mark.parametrize("greedy", [1, 10, 100])
def test_a_modest_owner_has_its_share_among_any_number_of_greedy_ones(greedy: int) -> None:
    """There is one slot. Greedy owners hold it for a second and queue again immediately; the modest one holds it for
    1/20 s.
    """
    queue: FairQueue[str] = FairQueue()
    seconds = {f"g{number}": 1.0 for number in range(greedy)} | {"modest": 0.05}
    for owner in seconds:
        queue.add(owner, owner)
    clock, served = 0.0, []
    while clock < 4 * greedy:
        owner = queue.take(anyone)
        assert owner is not None
        clock += seconds[owner]
        queue.used(owner, seconds[owner])
        served.append((clock, owner))
        queue.add(owner, owner)
    times = [at for at, owner in served if owner == "modest"]
    assert len(times) >= 2 * 20 - 2, "twenty times as often as a greedy one, after the first round"
    assert {owner for _, owner in served} == seconds.keys(), "and the greedy ones get theirs"


def test_owners_that_may_not_run_are_skipped_and_keep_their_turn() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.add("busy", 1)
    queue.add("free", 2)
    assert queue.take(lambda owner: owner != "busy") == 2
    assert queue.take(lambda owner: owner != "busy") is None
    assert queue.take(anyone) == 1


def test_a_dropped_item_is_not_served() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.add("a", 1)
    queue.add("b", 2)
    queue.drop(1)
    queue.drop(3)
    assert queue.clear() == [2]
    assert queue.take(anyone) is None


def test_accounts_are_reset_while_nothing_waits() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.used("greedy", 100.0)
    queue.used("", 100.0)
    queue.rest()
    for owner in ("greedy", "modest"):
        queue.add(owner, owner)
    assert queue.take(anyone) == "greedy"


def test_the_number_of_accounts_is_limited() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(2_000):
        queue.add(f"p{number}", "x")
        queue.take(anyone)
        queue.used(f"p{number}", 0.0)
    assert queue.known <= 257
