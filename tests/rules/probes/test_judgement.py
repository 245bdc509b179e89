"""Time-outs that are explained by a delay, and shortages of the machine."""

from __future__ import annotations

import pytest

from chronolet.rules.probes.judgement import NO_DELAY, Delay, Shares, explained_by, own, short_of, stalled
from chronolet_schemas.prober import Shortage


@pytest.mark.parametrize(
    ("delay", "why"),
    [
        (NO_DELAY, ()),
        (Delay(agent=249), ()),
        (Delay(agent=250), ("agent",)),
        (Delay(late=150, agent=100), ("agent",)),
        (Delay(read_late=250), ("agent",)),
        (Delay(engine=1_000), ("agent",)),
        (Delay(cpu=499, memory=499, io=499), ()),
        (Delay(cpu=500), ("cpu",)),
        (Delay(memory=500, io=800), ("memory", "io")),
        (Delay(agent=5_000, cpu=900), ("agent", "cpu")),
    ],
)
def test_a_delay_explains_a_time_out_of_a_second(delay: Delay, why: tuple[Shortage, ...]) -> None:
    assert explained_by(delay, 1_000) == why


def test_the_same_delay_does_not_explain_a_longer_time_out() -> None:
    assert explained_by(Delay(agent=250, cpu=500), 5_000) == ()


def test_the_agents_own_delay_is_its_lateness_and_the_longest_stall() -> None:
    delay = Delay(late=10, agent=200, read_late=300, engine=100, cpu=50, io=400)
    assert own(delay) == 310
    assert stalled(delay) == 400


def test_a_machine_is_short_of_the_resource_that_cost_much_of_the_time() -> None:
    assert short_of(Shares()) == ()
    assert short_of(Shares(agent=0.19, cpu=0.59, memory=0.09, io=0.39)) == ()
    assert short_of(Shares(agent=0.2, cpu=0.6, memory=0.1, io=0.4)) == ("agent", "cpu", "memory", "io")
    assert short_of(Shares(cpu=0.6), Shares(cpu=0.7, agent=1, memory=1, io=1)) == ()
