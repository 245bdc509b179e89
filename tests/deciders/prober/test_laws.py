"""Laws for any series of outcomes: the result is that of the kubelet's loop, and outcomes that a worker omits change
nothing.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chronolet.prober import signals
from chronolet.prober.decider import DECIDER
from chronolet.prober.outcomes import Streak
from chronolet.prober.state import State
from chronolet_schemas import prober
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Probe
from tests.deciders.prober import probing

NAMES: st.SearchStrategy[prober.ProbeName] = st.sampled_from(("Liveness", "Readiness", "Startup"))
OUTCOMES: st.SearchStrategy[list[prober.Outcome]] = st.lists(
    st.sampled_from(("success", "warning", "failure", "unknown", "error")), max_size=30
)
THRESHOLDS = st.integers(min_value=1, max_value=4)


class _Loop:
    """A model of how the kubelet's worker counts outcomes in doProbe."""

    def __init__(self, probe: prober.ProbeName, definition: Probe) -> None:
        self._probe = probe
        self._thresholds = {True: definition.success_threshold, False: definition.failure_threshold}
        self.last: bool | None = None
        self.run = 0
        self.cache: str = {"Liveness": "success", "Readiness": "failure", "Startup": "unknown"}[probe]
        self.on_hold = False

    def take(self, outcome: prober.Outcome) -> None:
        if self.on_hold or outcome == "error":
            return
        good = outcome in ("success", "warning")
        self.run = self.run + 1 if self.last == good else 1
        self.last = good
        if self.run < self._thresholds[good]:
            return
        self.cache = "success" if good else "failure"
        if self._probe == "Startup" or (self._probe == "Liveness" and not good):
            self.on_hold, self.run = True, 0


def _began(probe: prober.ProbeName, definition: Probe) -> State:
    state = probing.probed(probe, definition=definition, started=probe != "Startup").state
    assert isinstance(state, State)
    return state


def _decided(state: State, outcome: prober.Outcome, at: int) -> tuple[State, tuple[Event, ...]]:
    events: tuple[Event, ...] = ()
    for effect in DECIDER.outstanding(state):
        message = signals.ProbeOutcome(intent=effect.intent, outcome=outcome, at=at, milliseconds=1)
        events = tuple(DECIDER.decide(state, message, at))
    for event in events:
        after: Any = DECIDER.evolve(state, event)
        state = after
    return state, events


@settings(max_examples=150, deadline=None)
@given(probe=NAMES, outcomes=OUTCOMES, successes=THRESHOLDS, failures=THRESHOLDS)
def test_the_result_is_what_the_kubelet_would_have(
    probe: prober.ProbeName, outcomes: list[prober.Outcome], successes: int, failures: int
) -> None:
    definition = Probe(success_threshold=successes, failure_threshold=failures)
    loop, state = _Loop(probe, definition), _began(probe, definition)
    for n, outcome in enumerate(outcomes):
        loop.take(outcome)
        state, events = _decided(state, outcome, 2_000 + n * 10_000)
        assert (state.result, state.held) == (loop.cache, loop.on_hold)
        threshold = successes if loop.last else failures
        assert state.consecutive == min(loop.run, threshold)
        assert sum(isinstance(event, prober.ResultChanged) for event in events) <= 1


@settings(max_examples=100, deadline=None)
@given(probe=NAMES, outcomes=OUTCOMES, successes=THRESHOLDS, failures=THRESHOLDS)
def test_outcomes_that_a_worker_omits_change_nothing(
    probe: prober.ProbeName, outcomes: list[prober.Outcome], successes: int, failures: int
) -> None:
    definition = Probe(success_threshold=successes, failure_threshold=failures)
    streak, all_sent, news_sent = Streak(definition), _began(probe, definition), _began(probe, definition)
    for n, outcome in enumerate(outcomes):
        at = 2_000 + n * 1_000
        all_sent, events = _decided(all_sent, outcome, at)
        if streak.is_news(outcome, at):
            news_sent, _ = _decided(news_sent, outcome, at)
        else:
            assert events == ()
        assert news_sent == all_sent
