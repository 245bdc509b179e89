"""When the supervisor looks again at the other processes."""

from collections.abc import Callable

import pytest

from chronolet.kernel.hosting.looks import Looks
from chronolet.kernel.hosting.notices import Look, MembersChanged
from chronolet.kernel.timing import Timing

RENEWAL = 1.0
TIMING = Timing(looks_per_renewal=4, awaited_look_seconds=0.05)


class ListedTimer:
    """A timer that the test lets ring."""

    def __init__(self, seconds: float, action: Callable[[], None]) -> None:
        self.seconds = seconds
        self.action = action
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ListedTimers:
    """Timers of which none rings by itself."""

    def __init__(self) -> None:
        self.listed: list[ListedTimer] = []

    def after(self, seconds: float, action: Callable[[], None]) -> ListedTimer:
        self.listed.append(ListedTimer(seconds, action))
        return self.listed[-1]

    def pending(self) -> list[float]:
        return [round(one.seconds, 3) for one in self.listed if not one.cancelled]


@pytest.fixture
def timers() -> ListedTimers:
    return ListedTimers()


@pytest.fixture
def told() -> list[Look | MembersChanged]:
    return []


@pytest.fixture
def looks(timers: ListedTimers, told: list[Look | MembersChanged]) -> Looks:
    return Looks(timers, TIMING, RENEWAL, told.append)  # type: ignore[arg-type]


def test_counters_are_read_three_times_per_renewal(looks: Looks, timers: ListedTimers) -> None:
    looks.plan_reading(None, often=True)
    looks.plan_reading(None, often=True)
    assert timers.pending() == [0.333], "between two ticks, the third follows the second"


def test_a_look_that_is_handled_makes_room_for_the_next(
    looks: Looks, timers: ListedTimers, told: list[Look | MembersChanged]
) -> None:
    looks.plan_reading(None, often=True)
    timers.listed[0].action()
    assert told == [Look()]
    looks.begin(Look())
    looks.plan_reading(None, often=True)
    assert timers.pending() == [0.333, 0.333]


@pytest.mark.parametrize(("proof", "planned"), [(0.1, 0.102), (0.7, 0.333)])
def test_a_look_is_due_when_a_death_may_be_proven(
    looks: Looks, timers: ListedTimers, proof: float, planned: float
) -> None:
    looks.plan_reading(proof, often=True)
    assert timers.pending() == [planned]


def test_processes_of_this_machine_are_read_with_each_tick_and_when_a_death_may_be_proven(
    looks: Looks, timers: ListedTimers
) -> None:
    looks.plan_reading(None, often=False)
    assert timers.pending() == []
    looks.plan_reading(0.7, often=False)
    assert timers.pending() == [0.702]


def test_an_earlier_look_replaces_a_later_one(looks: Looks, timers: ListedTimers) -> None:
    looks.plan_reading(None, often=True)
    looks.plan_soon()
    looks.plan_reading(None, often=True)
    assert timers.pending() == [0.25]


def test_changes_of_the_members_are_one_notice_until_it_is_handled(
    looks: Looks, timers: ListedTimers, told: list[Look | MembersChanged]
) -> None:
    looks.members_changed()
    looks.members_changed()
    assert told == [MembersChanged()]
    looks.begin(MembersChanged())
    looks.members_changed()
    assert told == [MembersChanged()] * 2
    looks.await_release()
    looks.await_release()
    assert timers.pending() == [0.05]
    looks.begin(MembersChanged(awaited=True))
    looks.await_release()
    assert timers.pending() == [0.05, 0.05]
