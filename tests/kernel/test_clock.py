"""The clock: time never goes back, a jump is an event, and the time since a stored timestamp stays correct."""

import time
from pathlib import Path

import pytest

from chronolet.kernel.clock import Clock
from chronolet.kernel.storage.memory_data import wall_milliseconds
from chronolet_schemas import kernel
from tests.kernel import chore
from tests.kernel.chore import Assign
from tests.kernel.rig import Rig, request


class ManualClocks:
    """A wall clock and a monotonic clock that a test advances."""

    def __init__(self, wall: float = 1_000.0) -> None:
        self.wall = wall
        self.monotonic = 5.0

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds

    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.monotonic)


def test_now_follows_the_wall_clock_forward_and_never_back() -> None:
    clocks = ManualClocks()
    clock = clocks.clock()
    assert clock.now() == 1_000_000
    clocks.pass_(2)
    assert clock.now() == 1_002_000
    clocks.wall -= 3600
    assert clock.now() == 1_002_000
    clocks.pass_(1.5)
    assert clock.now() == 1_003_500
    clocks.wall += 7200
    assert clock.now() == 1_003_500 + 3_600_000


def test_time_advances_however_often_it_is_read() -> None:
    clocks = ManualClocks()
    clock = clocks.clock()
    clock.at_least(2_000_000)
    for _ in range(10_000):
        clocks.pass_(0.0004)
        clock.now()
    assert abs(clock.now() - 2_004_000) <= 1


def test_time_advances_to_the_end_of_the_log() -> None:
    clock = ManualClocks().clock()
    clock.at_least(1_500_000)
    assert clock.now() == 1_500_000
    clock.at_least(1_200_000)
    assert clock.now() == 1_500_000


def test_the_time_in_the_log_counts_only_without_a_stored_own_time() -> None:
    clock = ManualClocks().clock()
    clock.advance_to_log(1_500_000)
    assert clock.now() == 1_500_000
    clock.resume(1_600_000)
    clock.advance_to_log(9_000_000)
    assert clock.now() == 1_600_000


def test_a_jump_is_reported_once_and_only_from_a_second_on() -> None:
    clocks = ManualClocks()
    clock = clocks.clock()
    clocks.pass_(100)
    clocks.wall += 0.9
    assert clock.jump() == 0
    clocks.wall += 5
    assert clock.jump() == 5_900
    assert clock.jump() == 0
    clocks.wall -= 60
    assert clock.jump() == -60_000


@pytest.mark.parametrize("stalls", ["wall", "monotonic"])
def test_a_stall_between_two_readings_is_no_jump(stalls: str) -> None:
    """The process stalls twice, each time for a minute after reading the clock `stalls`. A jump during the second stall
    is reported.
    """
    clocks = ManualClocks()
    stall = 0.0

    def read(name: str) -> float:
        nonlocal stall
        seen: float = getattr(clocks, name)
        if name == stalls:
            clocks.pass_(stall)
            stall = 0.0
        return seen

    clock = Clock(lambda: read("wall"), lambda: read("monotonic"))
    stall = 60.0
    assert clock.jump() == 0
    stall = 60.0
    clocks.wall += 90
    assert clock.jump() + clock.jump() == 90_000


def test_a_jump_is_an_event_and_timers_fire_after_their_own_time(rig: Rig) -> None:
    """The wall clock goes back an hour while a timer is pending. The timer fires in time, not an hour late."""
    shift = [0.0]
    clock = Clock(lambda: time.time() + shift[0], time.monotonic)
    rig.process(chore.kind(watches_clock=True), clock=clock)
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    rig.send(Assign(request=request(), key="a", due=clock.now() + 300))
    rig.wait(chore.Assigned, 2)
    shift[0] = -3600.0
    rig.wait(chore.Fired)
    rig.send(Assign(request=request(), key="a"))  # leads to a turn after the jump, whenever the timer fired
    (jumped,) = rig.wait(kernel.ClockJumped)
    assert abs(jumped.by_milliseconds + 3_600_000) < 1_000


def test_a_timer_set_before_the_clock_went_back_fires_in_time_after_a_restart(rig: Rig) -> None:
    """The timer fires neither an hour late, as it would by the new clock, nor early by the server's clock, which did
    not go back.
    """
    first = rig.process(chore.kind())
    due = int(time.time() * 1000) + 400
    rig.send(Assign(request=request(), key="a", due=due))
    rig.wait(chore.Assigned)
    first.retire()
    rig.process(chore.kind(), clock=Clock(lambda: time.time() - 3600, time.monotonic))
    rig.wait(chore.Fired)
    (fired,) = (entry for entry in rig.log() if entry.type == "chore.Fired@1")
    assert fired.position.milliseconds >= due


def test_after_a_restart_the_stored_time_counts_and_the_time_of_the_server_does_not(rig: Rig, tmp_path: Path) -> None:
    path, hour = tmp_path / "log-end", 3_600_000
    rig.server.clock = lambda: wall_milliseconds() + 5 * hour
    first = rig.process(chore.kind(), log_end=path)
    rig.send(Assign(request=request(), key="a", due=int(time.time() * 1000) + 400))
    rig.wait(chore.Assigned)
    first.retire()
    back = Clock(lambda: time.time() - 3600, time.monotonic)
    rig.process(chore.kind(), log_end=path, clock=back)
    rig.wait(chore.Fired)
    assert back.now() < wall_milliseconds() + hour
