"""The concurrency limit that a lane derives from the measured capacity of the server."""

from __future__ import annotations

import math
from random import Random

import pytest

from chronolet.kernel.effects.pace import ENOUGH, GAIN, LEAST, MEASURING_SECONDS, MEMORY_SECONDS, Pace, initial_limit


class Server:
    """A simulated server. Up to `carries` concurrent jobs run at full speed; with more, each of them runs more slowly.
    A job that runs alone takes `alone` seconds, multiplied by a random factor of up to `spread`.
    """

    def __init__(self, carries: float, *, most: int = 64, first: int = 4, least: int = LEAST) -> None:
        self.carries = carries
        self.alone = 0.2
        self.spread = 1.0
        self.now = 0.0
        self.chance = Random(5)
        self.pace = Pace(most, first, least=least, clock=lambda: self.now)

    def idles(self, jobs: int = ENOUGH) -> None:
        """Run jobs one after the other."""
        for _ in range(jobs):
            self._job(1, waiting=False)

    def works(self, jobs: int, *, waiting: bool = True) -> int:
        """Run jobs, as many concurrently as the limit allows. Returns the limit after them."""
        for _ in range(jobs):
            self._job(self.pace.limit, waiting=waiting)
        return self.pace.limit

    def _job(self, concurrent: int, *, waiting: bool) -> None:
        seconds = self.alone * self.chance.uniform(1.0, self.spread) * max(1.0, concurrent / self.carries)
        self.now += seconds / concurrent
        self.pace.waits(waiting=waiting)
        self.pace.ended("start", seconds, concurrent=concurrent - 1)


@pytest.mark.parametrize("carries", [2, 5, 12])
def test_the_limit_settles_at_a_multiple_of_the_servers_capacity(carries: int) -> None:
    server = Server(carries)
    server.idles()
    assert math.floor(carries * GAIN) <= server.works(1000) <= math.ceil(carries * GAIN)


@pytest.mark.parametrize("spread", [2.0, 3.0])
def test_uneven_durations_do_not_lower_the_limit(spread: float) -> None:
    server = Server(8)
    server.spread = spread
    server.idles(15)
    assert 8 <= server.works(1000) <= 10 * GAIN


def test_the_first_batch_runs_with_the_first_limit() -> None:
    assert Server(20).works(1000) == 4
    assert initial_limit(2) == 2 * GAIN


def test_jobs_that_wait_for_each_other_do_not_keep_the_limit_low() -> None:
    """Each further concurrent job adds to the throughput, but less than the one before."""
    server = Server(1)
    server.idles()
    for _ in range(200):
        server.carries = 2 - 1 / server.pace.limit
        server.works(1)
    assert server.pace.limit >= 7


def test_the_limit_grows_only_while_jobs_wait() -> None:
    server = Server(20)
    server.idles()
    assert server.works(1000, waiting=False) == 4


def test_the_limit_stays_between_its_bounds() -> None:
    server = Server(50, most=16)
    server.idles()
    assert server.works(1000) == 16
    server = Server(0.5, least=4)
    server.idles()
    assert server.works(50) == 4
    server = Server(8, most=1, first=8)
    server.idles()
    assert server.works(100) == 1


def test_the_limit_follows_a_server_that_slows_down_and_recovers() -> None:
    server = Server(8)
    server.idles()
    server.works(1000)
    server.carries = 2
    assert server.works(200) == round(2 * GAIN)
    server.carries = 8
    assert server.works(1000) == round(8 * GAIN)


def test_a_server_that_stays_slower_is_measured_again_even_if_it_is_busy() -> None:
    server = Server(4)
    server.idles()
    server.works(200)
    server.alone *= 10
    limits = set()
    while server.now < 3 * MEMORY_SECONDS:
        limits.add(server.works(1))
    assert 1 in limits
    assert server.works(200) == round(4 * GAIN)


def test_each_name_has_its_own_usual_duration() -> None:
    server = Server(4)
    for _ in range(10):
        server.pace.ended("quick", 0.001, concurrent=0)
    server.idles()
    assert server.works(500) == round(4 * GAIN)


def test_an_idle_time_does_not_change_the_limit_of_the_next_batch() -> None:
    server = Server(8)
    server.idles()
    learned = server.works(1000)
    server.idles(1)
    server.now += 2 * MEMORY_SECONDS
    assert {server.works(1) for _ in range(200)} <= {learned, learned - 1, learned + 1}


def test_a_new_measurement_starts_only_while_jobs_wait() -> None:
    server = Server(8)
    server.idles()
    learned = server.works(1000)
    server.now += MEMORY_SECONDS
    assert server.pace.limit == 1
    server.pace.waits(waiting=False)
    assert server.pace.limit == learned
    server.pace.waits(waiting=True)
    assert server.pace.limit == learned


def test_a_measurement_that_gets_no_durations_ends_after_a_while() -> None:
    now = [0.0]
    pace = Pace(64, 4, clock=lambda: now[0])
    pace.waits(waiting=True)
    limits = []
    for now[0] in (0.0, MEMORY_SECONDS, MEMORY_SECONDS + MEASURING_SECONDS, 2 * MEMORY_SECONDS + MEASURING_SECONDS):
        pace.waits(waiting=True)
        limits.append(pace.limit)
    assert limits == [4, 1, 4, 1]


def test_durations_of_an_unknown_name_have_no_effect() -> None:
    server = Server(20)
    server.idles()
    for _ in range(500):
        server.works(3)
        server.pace.ended("rare", server.alone, concurrent=server.pace.limit - 1)
    assert server.pace.limit > 20


def test_a_rare_name_does_not_end_a_measurement() -> None:
    server = Server(8)
    server.idles()
    server.works(1000)
    server.now += MEMORY_SECONDS
    server.pace.ended("rare", 0.2, concurrent=0)
    assert server.pace.limit == 1
    for _ in range(ENOUGH):
        server.pace.ended("start", 0.2, concurrent=0)
    assert server.pace.limit > 1
