"""The watch of renewal counters, on a manual clock."""

from collections.abc import Mapping

import pytest

from chronolet.kernel.ownership.watch import KEPT_TIMES, CounterWatch

TTL = 3.0
STEP = 0.25


class World:
    """A watch, its clock, and the counters that it reads; each reading takes `delay` seconds."""

    def __init__(self) -> None:
        self.at = 100.0
        self.delay = 0.0
        self.counters: dict[str, str] = {"p": "1"}
        self.watch = CounterWatch(TTL, lambda: self.at)

    def renewals(self) -> Mapping[str, str]:
        self.at += self.delay
        return self.counters

    def read(self, *owners: str) -> Mapping[str, str]:
        return self.watch.read(self.renewals, owners or ("p",))

    def watched_for(self, seconds: float) -> Mapping[str, str]:
        """Read at short intervals; return the result of the last reading."""
        found: Mapping[str, str] = {}
        until = self.at + seconds
        while self.at < until:
            self.at += STEP
            found = self.read()
        return found


def test_a_counter_that_does_not_move_for_a_time_to_live_proves_a_death() -> None:
    world = World()
    assert world.read() == {}
    assert world.watched_for(TTL - STEP) == {}
    assert world.watched_for(STEP) == {"p": "1"}


def test_the_next_proof_is_a_time_to_live_after_the_first_reading_of_a_counter_that_should_have_moved() -> None:
    world = World()
    world.read()
    world.watched_for(TTL / 2)
    assert world.watch.next_proof() is None
    world.watched_for(STEP)
    assert world.watch.next_proof() == TTL / 2 - STEP
    world.at += STEP
    assert world.watch.next_proof() == TTL / 2 - 2 * STEP
    world.counters["q"] = "1"
    world.read("p", "q")
    assert world.watch.next_proof() == TTL / 2 - 2 * STEP
    world.at += TTL / 2 - 2 * STEP
    assert world.watch.next_proof() is None, "a reading that fails must not be repeated immediately"
    assert world.read("p", "q") == {"p": "1"}
    assert world.watch.next_proof() is None


def test_a_reading_that_fails_leaves_the_next_proof() -> None:
    world = World()
    world.read()
    world.watched_for(TTL / 2 + STEP)
    before = world.watch.next_proof()

    def fails() -> Mapping[str, str]:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        world.watch.read(fails, ("p",))
    assert world.watch.next_proof() == before


def test_any_change_of_the_counter_starts_the_watch_over() -> None:
    world = World()
    for counter in ("2", "1", "9"):
        world.watched_for(TTL - STEP)
        world.counters["p"] = counter
        assert world.watched_for(TTL - STEP) == {}


def test_a_process_without_a_counter_is_watched_as_long() -> None:
    world = World()
    world.counters.clear()
    world.read()
    assert world.watched_for(TTL - STEP) == {}
    assert world.watched_for(STEP) == {"p": ""}


def test_the_removal_of_a_counter_is_no_movement() -> None:
    """A takeover of another shard of the same owner removes the counter."""
    world = World()
    world.read()
    world.watched_for(TTL / 2)
    world.counters.clear()
    assert world.watched_for(TTL / 2) == {"p": "1"}


def test_the_watch_starts_over_after_a_gap_in_its_own_readings() -> None:
    """The counter may have moved and been set back, for instance by two failovers."""
    world = World()
    world.read()
    world.watched_for(TTL - STEP)
    world.at += TTL / 2 + STEP
    assert world.read() == {}
    assert world.watched_for(TTL - STEP) == {}
    assert world.watched_for(STEP) == {"p": "1"}


def test_a_slow_server_is_a_gap_too() -> None:
    world = World()
    world.read()
    world.watched_for(TTL - STEP)
    world.delay = TTL
    assert world.read() == {}


def test_the_time_of_a_reading_counts_for_the_owner() -> None:
    """The server may have read the counter at any time between the request and the reply."""
    world = World()
    world.delay = STEP
    world.read()
    first_reply = world.at
    while not (found := world.read()):
        last_request = world.at - world.delay
        assert last_request - first_reply < TTL
    assert found == {"p": "1"}
    assert world.at - world.delay - first_reply >= TTL


def test_callers_that_ask_about_different_processes_share_a_watch() -> None:
    """One caller asks about the owners of free shards, another about all members. Each reading is of all counters."""
    world = World()
    world.counters["q"] = "1"
    world.read("p", "q")
    for _ in range(int(TTL / STEP)):
        world.at += STEP
        world.read("q")
    world.at += STEP
    assert world.read("q") == {"p": "1", "q": "1"}


def test_processes_that_no_caller_asks_about_are_forgotten() -> None:
    world = World()
    world.counters["q"] = "1"
    world.read("p", "q")
    for _ in range(int(KEPT_TIMES * TTL / STEP)):
        world.at += STEP
        world.read("q")
    world.at += STEP
    assert world.read("p", "q") == {"q": "1"}
