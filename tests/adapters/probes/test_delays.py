"""Measured delays: with a manual clock, and from files as Linux writes them."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chronolet.adapters.probes.delays import BEAT_SECONDS, REST_AFTER_SECONDS, Delays
from chronolet.adapters.probes.pressure import Pressure, Waited
from chronolet.ports.pods.probes import Reading


class World:
    """A fake loop, clock and machine in one object."""

    def __init__(self) -> None:
        self.now = 100.0
        self.totals = Waited()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self.delays = Delays(self, self, lambda: self.now)

    def at(self, when: float, action: Callable[[], None]) -> World:
        heapq.heappush(self._timers, (when, len(self._timers), action))
        return self

    def cancel(self) -> None: ...

    def waited(self) -> Waited:
        return self.totals

    @property
    def timers(self) -> int:
        return len(self._timers)

    def run(self, seconds: float, *, shares: Waited | None = None, probes: bool = True) -> None:
        """Run the loop for `seconds`. `shares`: the fraction of each second that tasks spend waiting for each resource.
        `probes`: whether a probe starts first, which keeps the heartbeat running.
        """
        if probes:
            self.delays.wake()
        until = self.now + seconds
        while self._timers and self._timers[0][0] <= until:
            when, _, action = heapq.heappop(self._timers)
            self._pass(max(when, self.now), shares)
            action()
        self._pass(until, shares)

    def stop(self, seconds: float) -> None:
        """Simulate that the process is stopped for `seconds`."""
        self.now += seconds

    def _pass(self, until: float, shares: Waited | None) -> None:
        passed, self.now = until - self.now, until
        self.totals = Waited(
            *(total + passed * part for total, part in zip(self.totals, shares or Waited(), strict=True))
        )


@pytest.fixture
def world() -> World:
    made = World()
    made.delays.wake()
    return made


def timed_out(seconds: float = 1.0, engine: float = 0.0) -> Reading:
    return Reading(result="failure", started=0.0, seconds=seconds, timed_out=True, engine_seconds=engine)


def test_an_attempt_on_a_quiet_machine_has_no_delay(world: World) -> None:
    mark = world.delays.mark()
    world.run(1.0)
    delay = world.delays.since(mark, timed_out(), 1.0)
    assert (delay.agent, delay.read_late, delay.engine, delay.cpu, delay.memory, delay.io) == (0, 0, 0, 0, 0, 0)
    assert world.delays.short_of() == ()


def test_time_in_which_the_process_was_stopped_is_a_delay_of_the_agent(world: World) -> None:
    world.run(10.05)
    mark = world.delays.mark()
    world.stop(5.0)
    before_the_beat = world.delays.since(mark, timed_out(5.0), 1.0)
    world.run(0.0)
    after_it = world.delays.since(mark, timed_out(5.0), 1.0)
    assert 4_800 <= before_the_beat.agent <= 5_000
    assert after_it.agent == before_the_beat.agent
    assert before_the_beat.read_late == 3_890
    assert world.delays.short_of() == ("agent",)
    world.run(11.0)
    assert world.delays.short_of() == (), "the delay is over"


def test_only_waiting_during_the_attempt_counts(world: World) -> None:
    world.run(3.0, shares=Waited(cpu=1.0))
    world.run(0.1)
    mark = world.delays.mark()
    world.run(1.0, shares=Waited(queue=0.3, cpu=0.5, memory=0.25, io=0.75))
    delay = world.delays.since(mark, timed_out(engine=0.7), 1.0)
    assert abs(delay.agent - 300) < 60
    assert abs(delay.cpu - 500) < 100
    assert abs(delay.memory - 250) < 60
    assert abs(delay.io - 750) < 100
    assert delay.engine == 700


def test_shortages_are_resources_to_which_much_time_was_lost(world: World) -> None:
    world.run(20.0, shares=Waited(cpu=0.9))
    assert world.delays.short_of() == ("cpu",)
    world.run(6.0, shares=Waited(memory=0.3, io=0.5))
    assert world.delays.short_of() == ("memory",)
    world.run(5.0, shares=Waited(memory=0.3, io=0.9))
    assert world.delays.short_of() == ("memory", "io")
    world.run(11.0)
    assert world.delays.short_of() == ()


def test_a_late_read_is_measured_without_reading_files(world: World) -> None:
    mark = world.delays.mark()
    world.run(0.05)
    world.totals = Waited(cpu=50.0)
    world.stop(0.65)
    delay = world.delays.since(mark, Reading(result="success", started=0.0, seconds=0.7), 1.0)
    assert (delay.read_late, delay.agent, delay.cpu) == (500, 500, 0)


def test_the_heartbeat_stops_without_probes_and_restarts(world: World) -> None:
    world.run(REST_AFTER_SECONDS + 5 * BEAT_SECONDS, probes=False)
    assert world.delays.short_of() == ()
    assert world.timers == 0
    world.stop(500.0)
    world.totals = Waited(cpu=500.0)
    world.delays.wake()
    world.delays.wake()
    assert world.timers == 1
    mark = world.delays.mark()
    world.run(1.0)
    assert world.delays.since(mark, timed_out(), 1.0).agent == 0, "a stopped heartbeat is no delay"
    assert world.delays.short_of() == (), "earlier waiting does not count"


def test_a_long_stop_of_the_process_does_not_stop_the_heartbeat(world: World) -> None:
    world.run(1.0)
    world.stop(2 * REST_AFTER_SECONDS)
    world.run(0.0, probes=False)
    assert world.timers == 1
    world.run(0.5)
    assert "agent" in world.delays.short_of()


def stall(total: int) -> str:
    return f"some avg10=1.00 avg60=2.00 avg300=3.00 total={total}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n"


def test_pressure_is_read_from_proc_or_from_cgroup2(tmp_path: Path) -> None:
    proc, cgroup = tmp_path / "pressure", tmp_path / "cgroup"
    for folder in (proc, cgroup):
        folder.mkdir()
    (proc / "cpu").write_text(stall(1_500_000))
    (cgroup / "cpu.pressure").write_text(stall(1))
    (cgroup / "io.pressure").write_text(stall(2_000_000))
    pressure = Pressure((proc, cgroup))
    found = pressure.waited()
    assert (found.cpu, found.memory, found.io) == (1.5, 0.0, 2.0)
    (proc / "cpu").write_text(stall(1_750_000))
    assert pressure.waited().cpu == 1.75
    assert pressure.waited().queue >= found.queue
    known = pressure.waited()
    os.close(pressure._files["queue"])
    assert pressure.waited() == known, "an unreadable file ends no probe"


def test_without_pressure_files_runnable_tasks_stand_for_cpu(tmp_path: Path) -> None:
    now = [0.0]
    pressure = Pressure((tmp_path,), lambda: now[0])
    before = pressure.waited()
    now[0] = 10.0
    after = pressure.waited()
    pressure.close()
    assert 0.0 <= after.cpu - before.cpu <= 10.0
    assert (after.memory, after.io) == (0.0, 0.0)
