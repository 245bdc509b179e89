"""When a container is probed, and which outcomes a worker omits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chronolet.prober import schedule
from chronolet.prober.outcomes import REMINDER_MS, Streak, counts_as
from chronolet.prober.wanted import RunProbe
from chronolet_schemas import prober
from chronolet_schemas.podspec import Probe
from tests.deciders.prober import probing

TIMES = st.integers(min_value=0, max_value=10**13)
DELAYS = st.integers(min_value=0, max_value=10**6)
PERIODS = st.integers(min_value=10, max_value=10**6)


def test_a_new_container_is_probed_after_its_delay() -> None:
    assert schedule.first_at(started_at=1_000, delay=5_000, period=10_000, now=1_200, seed="k0") == 6_000
    assert schedule.first_at(started_at=1_000, delay=0, period=10_000, now=1_200, seed="k0") == 1_000


@given(now=TIMES, period=PERIODS, seed=st.text())
def test_a_known_container_is_probed_within_a_period(now: int, period: int, seed: str) -> None:
    at = schedule.first_at(started_at=now - period - 1, delay=0, period=period, now=now, seed=seed)
    assert now <= at < now + period


def test_the_first_probes_of_many_known_containers_are_spread() -> None:
    parts = [schedule.spread(f"container-{n}/Liveness", 10_000) // 1_000 for n in range(1_000)]
    assert all(50 < parts.count(part) < 200 for part in range(10))


@given(from_at=TIMES, now=TIMES, delay=DELAYS, period=PERIODS)
def test_the_next_probe_is_a_whole_number_of_periods_later(from_at: int, now: int, delay: int, period: int) -> None:
    at = schedule.next_at(from_at, anchored=True, delay=delay, period=period, now=now)
    assert now <= at < now + period
    assert (at - from_at) % period == 0


@given(from_at=TIMES, now=TIMES, delay=DELAYS, period=PERIODS)
def test_the_first_time_is_as_soon_as_possible(from_at: int, now: int, delay: int, period: int) -> None:
    at = schedule.next_at(from_at, anchored=False, delay=delay, period=period, now=now)
    longest = now + delay + period
    assert at == (now if from_at < now else min(from_at, longest))


@given(when=st.floats(0.0, 1e9), period=PERIODS)
def test_a_probe_waits_a_hundredth_of_its_period_for_others_at_most(when: float, period: int) -> None:
    seconds = period / 1000
    usual = 0.5 if seconds >= 10 else min(seconds / 100, 0.1)
    late = schedule.shared(when, seconds) - when
    assert 0 <= late <= usual + 1e-6
    first = schedule.shared(when, seconds, schedule.FIRST_SHARED_SECONDS) - when
    assert 0 <= first <= min(usual, schedule.FIRST_SHARED_SECONDS) + 1e-6


def test_probes_of_one_period_begin_together() -> None:
    whens = [20.0 + number / 330 for number in range(330)]
    assert len({schedule.shared(when, 1.0) for when in whens}) <= 101
    assert schedule.shared(20.0001, 1.0) == schedule.shared(20.0099, 1.0), "probes within ten milliseconds share a time"
    usual = [20.0 + number / 50 for number in range(500)]
    assert len({schedule.shared(when, 10.0) for when in usual}) <= 21, "about 25 of 500 probes share a time"
    assert len({schedule.shared(when, 9.99) for when in usual}) <= 102, "a shorter period is kept more precisely"
    assert schedule.shared(20.0101, 10.0, schedule.FIRST_SHARED_SECONDS) < schedule.shared(20.0101, 10.0), (
        "first probes"
    )
    assert schedule.shared(20.0001, 0.01) < schedule.shared(20.0099, 0.01), "no delay of a whole period"


def test_a_clock_set_back_by_an_hour_stops_no_probing() -> None:
    """This is true for a running probe, for a pending one, and for one whose container started in the future."""
    now, hour = 10**12, 3_600_000
    assert schedule.next_at(now + hour, anchored=True, delay=0, period=1_000, now=now) == now
    assert schedule.next_at(now + hour, anchored=False, delay=5_000, period=1_000, now=now) == now + 6_000
    assert schedule.first_at(started_at=now + hour, delay=5_000, period=1_000, now=now, seed="k0") == now + 5_000


def test_a_worker_starts_with_the_first_probe_or_continues_the_schedule() -> None:
    scene = probing.probed(definition=replace(probing.DEFINITION, initial_delay_seconds=7))
    (worker,) = scene.effects.values()
    assert isinstance(worker, RunProbe)
    assert [schedule.begins_at(worker, now) for now in (1_000, 8_000, 9_000)] == [8_000, 8_000, 9_000]
    (worker,) = probing.outcome(scene, "success", at=9_000).effects.values()
    assert isinstance(worker, RunProbe)
    assert [schedule.begins_at(worker, now) for now in (9_000, 9_001, 33_000)] == [9_000, 19_000, 39_000]


def test_a_new_process_spreads_probes_of_earlier_containers_and_probes_new_ones_immediately() -> None:
    scene = probing.probed(definition=replace(probing.DEFINITION, initial_delay_seconds=7))
    (worker,) = scene.effects.values()
    assert isinstance(worker, RunProbe)
    period, now = worker.period_milliseconds, worker.from_at + 3_000
    ran_before = [schedule.begins_at(replace(worker, id=f"k{n}"), now, process_age=2_999) - now for n in range(100)]
    assert len(set(ran_before)) > 50
    assert all(0 <= wait < period for wait in ran_before)
    assert schedule.begins_at(worker, now, process_age=3_000) == now, "no earlier probe was possible"
    assert schedule.begins_at(worker, now, process_age=period) == now
    assert schedule.begins_at(replace(worker, anchored=True), now, process_age=1) == worker.from_at + period


def test_what_the_outcomes_count_as() -> None:
    expected: dict[prober.Outcome, str] = {
        "success": "success",
        "warning": "success",
        "failure": "failure",
        "unknown": "failure",
        "error": "error",
    }
    assert {outcome: counts_as(outcome) for outcome in expected} == expected


def test_a_worker_sends_outcomes_up_to_the_threshold_and_then_reminders() -> None:
    streak = Streak(Probe(success_threshold=2, failure_threshold=3))
    sent = [streak.is_news("success", at) for at in range(0, 60_000, 10_000)]
    assert sent == [True, True, False, False, False, False]
    assert [streak.is_news("failure", 60_000 + n) for n in range(4)] == [True, True, True, False]
    assert streak.is_news("error", 70_000)
    assert not streak.is_news("error", 70_001)
    assert streak.is_news("unknown", 80_000), "an interrupted streak is sent again"
    assert [streak.is_news("unknown", at) for at in (80_001, 80_002, 80_003)] == [True, True, False]
    assert not streak.is_news("failure", 80_002 + REMINDER_MS - 1)
    assert streak.is_news("failure", 80_002 + REMINDER_MS)
    assert streak.is_news("failure", 1_000), "the clock was set back"


@pytest.mark.parametrize(
    ("note", "at"),
    [
        ("10500", 10_500),  # in the future: then
        ("9000", 10_000),  # it has passed: immediately
        ("", None),
        ("garbage", None),
        ("-5", None),
        ("99999999", None),  # from another clock
    ],
)
def test_a_moved_probe_continues_at_the_time_that_its_former_worker_has_left(note: str, at: int | None) -> None:
    assert schedule.resumed_at(note, 10_000, 1_000) == at
