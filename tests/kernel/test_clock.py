"""Time never goes back, a jump is an event, and stored timestamps keep their distance."""

import time
from pathlib import Path

import pytest

from chronolet.kernel.clock import Clock
from chronolet.kernel.storage.memory_data import wall_milliseconds
from chronolet_schemas import kernel
from tests.kernel import chore
from tests.kernel.chore import Tell
from tests.kernel.rig import Rig, request


class Hands:
    """Wall and monotonic time that a test moves."""

    def __init__(self, wall: float = 1_000.0) -> None:
        self.wall = wall
        self.monotonic = 5.0

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds

    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.monotonic)


def test_now_follows_the_wall_clock_forward_and_never_back() -> None:
    hands = Hands()
    clock = hands.clock()
    assert clock.now() == 1_000_000
    hands.pass_(2)
    assert clock.now() == 1_002_000
    hands.wall -= 3600
    assert clock.now() == 1_002_000
    hands.pass_(1.5)
    assert clock.now() == 1_003_500
    hands.wall += 7200
    assert clock.now() == 1_003_500 + 3_600_000


def test_frequent_readings_do_not_make_time_stand_still() -> None:
    hands = Hands()
    clock = hands.clock()
    clock.at_least(2_000_000)
    for _ in range(10_000):
        hands.pass_(0.0004)
        clock.now()
    assert abs(clock.now() - 2_004_000) <= 1


def test_time_advances_to_the_end_of_the_log() -> None:
    clock = Hands().clock()
    clock.at_least(1_500_000)
    assert clock.now() == 1_500_000
    clock.at_least(1_200_000)
    assert clock.now() == 1_500_000


def test_the_logs_time_counts_only_without_a_stored_own_time() -> None:
    clock = Hands().clock()
    clock.advance_to_log(1_500_000)
    assert clock.now() == 1_500_000
    clock.resume(1_600_000)
    clock.advance_to_log(9_000_000)
    assert clock.now() == 1_600_000


def test_a_jump_is_reported_once_and_small_ones_never() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.pass_(100)
    hands.wall += 0.9
    assert clock.jump() == 0
    hands.wall += 5
    assert clock.jump() == 5_900
    assert clock.jump() == 0
    hands.wall -= 60
    assert clock.jump() == -60_000


@pytest.mark.parametrize("stands", ["wall", "monotonic"])
def test_a_stall_between_two_readings_is_no_jump(stands: str) -> None:
    """The process stalls once for a minute after reading this clock; a jump during the stall is still reported."""
    hands = Hands()
    still = 0.0

    def look(name: str) -> float:
        nonlocal still
        seen: float = getattr(hands, name)
        if name == stands:
            hands.pass_(still)
            still = 0.0
        return seen

    clock = Clock(lambda: look("wall"), lambda: look("monotonic"))
    still = 60.0
    assert clock.jump() == 0
    still = 60.0
    hands.wall += 90
    assert clock.jump() + clock.jump() == 90_000


def test_a_jump_is_an_event_and_a_timer_still_fires(rig: Rig) -> None:
    """The wall clock goes back an hour while a timer runs: the timer fires after its own time, not an hour late."""
    shift = [0.0]
    clock = Clock(lambda: time.time() + shift[0], time.monotonic)
    rig.process(chore.kind(watches_clock=True), clock=clock)
    rig.send(Tell(request=request(), key="a"))
    rig.wait(chore.Told)
    rig.send(Tell(request=request(), key="a", due=clock.now() + 300))
    rig.wait(chore.Told, 2)
    shift[0] = -3600.0
    rig.wait(chore.Rang)
    rig.send(Tell(request=request(), key="a"))  # a turn after the jump, whenever the timer fired
    (jumped,) = rig.wait(kernel.ClockJumped)
    assert abs(jumped.by_milliseconds + 3_600_000) < 1_000


def test_a_time_stored_before_the_clock_went_back_keeps_its_distance_across_a_restart(rig: Rig) -> None:
    first = rig.process(chore.kind())
    rig.send(Tell(request=request(), key="a", due=int(time.time() * 1000) + 400))
    rig.wait(chore.Told)
    first.retire()
    rig.process(chore.kind(), clock=Clock(lambda: time.time() - 3600, time.monotonic))
    rig.wait(chore.Rang)


def test_the_state_folders_time_keeps_the_distance_and_the_servers_time_does_not_count(
    rig: Rig, tmp_path: Path
) -> None:
    path, hour = tmp_path / "log-end", 3_600_000
    rig.server.clock = lambda: wall_milliseconds() + 5 * hour
    first = rig.process(chore.kind(), log_end=path)
    rig.send(Tell(request=request(), key="a", due=int(time.time() * 1000) + 400))
    rig.wait(chore.Told)
    first.retire()
    back = Clock(lambda: time.time() - 3600, time.monotonic)
    rig.process(chore.kind(), log_end=path, clock=back)
    rig.wait(chore.Rang)
    assert back.now() < wall_milliseconds() + hour
