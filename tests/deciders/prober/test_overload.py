"""Unjudged outcomes, and kills that `pleg` decides about during a shortage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chronolet.node.settings.table import Settings
from chronolet.prober import wanted
from chronolet.prober.actor import kind
from chronolet.prober.outcomes import Streak
from chronolet.prober.unjudged import LEAST, REPORT_MS, Patience
from chronolet_schemas import pleg, pod, prober
from chronolet_schemas.podspec import Probe
from tests.deciders.given import Scene
from tests.deciders.prober import probing
from tests.deciders.prober.probing import REF, changed, counted, exited, outcome, stopping

RUN: dict[str, Any] = {"id": "k0", "started_at": 1_000, "probe": "Liveness", **REF}
LIMIT = 60_000
"""The unjudged limit, in milliseconds."""
WITHDRAWN = prober.KillWithdrawn(**RUN)


def unjudged(scene: Scene, count: int, passed: int, at: int) -> Scene:
    return outcome(
        scene,
        "unjudged",
        at=at,
        output="late",
        short_of=("agent", "io"),
        stalled_milliseconds=900,
        unjudged=count,
        unjudged_milliseconds=passed,
    )


def requested(probe: prober.ProbeName = "Liveness") -> Scene:
    """Return a scene after three failures while the machine is short of CPU: a kill has been requested."""
    scene = probing.probed(probe, started=probe != "Startup")
    for at in (2_000, 12_000, 22_000):
        outcome(scene, "failure", at=at, output="no", short_of=("cpu",))
    return scene


def released(**changes: Any) -> pleg.ProbeKillReleased:
    return pleg.ProbeKillReleased(**RUN | {"at": 30_000} | changes)


def test_an_unjudged_outcome_is_an_event_and_changes_no_streak() -> None:
    scene = outcome(probing.probed(), "failure", at=2_000)
    before = scene.state
    unjudged(scene, 1, 0, 12_000).then(
        prober.ProbeUnjudged(
            at=12_000,
            milliseconds=5,
            consecutive=1,
            for_milliseconds=0,
            stalled_milliseconds=900,
            short_of=("agent", "io"),
            output="late",
            id="k0",
            probe="Liveness",
            **REF,
        )
    )
    explanation = "the agent or the engine was stalled and the machine was short of disk I/O"
    scene.then_kube_events(("ProbeUnjudged", f"Liveness probe timed out and was not counted: {explanation}"))
    assert (scene.state.last, scene.state.consecutive, scene.state.result) == ("failure", 1, before.result)
    outcome(scene, "failure", at=22_000)
    assert scene.only(prober.ProbeFailed).consecutive == 2, "the streak continues after it"


def test_a_restarted_worker_continues_the_run_of_unjudged_outcomes() -> None:
    scene = unjudged(outcome(probing.probed(), "success", at=2_000), 4, 31_000, 40_000)
    (effect,) = scene.effects.values()
    assert isinstance(effect, wanted.RunProbe)
    assert (effect.unjudged, effect.unjudged_milliseconds) == (4, 31_000)
    outcome(scene, "failure", at=50_000)
    assert scene.state.unjudged == 4, "a failure is no success"
    outcome(scene, "success", at=60_000)
    outcome(scene, "success", at=70_000).then()
    assert (scene.state.unjudged, scene.state.unjudged_milliseconds) == (0, 0)


def test_a_success_that_ends_a_run_of_unjudged_outcomes_is_an_event() -> None:
    scene = unjudged(outcome(probing.probed(), "success", at=2_000), 1, 0, 12_000)
    outcome(scene, "success", at=22_000)
    assert scene.kinds == ["ProbeSucceeded"]
    scene = unjudged(scene, 1, 0, 32_000)
    scene.when(exited(), at=33_000).when(probing.wanted(attempt=1, id="k1", started_at=34_000), at=34_000)
    assert scene.state.unjudged == 0, "another container has the whole limit"


def test_a_kill_during_a_shortage_is_requested() -> None:
    scene = requested()
    scene.then(
        prober.ProbeFailed(**counted("Liveness", 3, 3, 22_000, output="no")),
        prober.KillAsked(attempt=0, consecutive=3, threshold=3, short_of=("cpu",), output="no", **RUN),
    )
    assert scene.effects, "probing continues"
    outcome(scene, "failure", at=32_000, output="no", short_of=("cpu",)).then()
    scene.when(released(), at=33_000).then(changed("Liveness", "failure", consecutive=3, threshold=3, output="no"))
    assert scene.effects == {}
    scene.when(released(), at=34_000).then()
    scene.when(probing.wanted(attempt=1, id="k1", started_at=40_000), at=40_000)
    outcome(scene, "failure", at=41_000)
    assert scene.only(prober.ProbeFailed).consecutive == 1, "the streak starts over, as after any kill"


def test_a_failed_startup_probe_also_requests_a_kill_and_readiness_never_does() -> None:
    assert requested("Startup").kinds == ["ProbeFailed", "KillAsked"]
    scene = outcome(probing.probed("Readiness"), "success", at=1_500)
    for at in (2_000, 12_000, 22_000):
        outcome(scene, "failure", at=at, short_of=("cpu",))
    assert scene.kinds == ["ProbeFailed", "ResultChanged"]


@pytest.mark.parametrize("change", [{"id": "k9"}, {"started_at": 5}])
def test_a_release_for_another_run_is_ignored(change: dict[str, Any]) -> None:
    scene = requested().when(released(**change), at=30_000)
    scene.then()
    assert scene.state.asked


def test_an_unrequested_release_is_ignored() -> None:
    probing.probed().when(released(), at=30_000).then()


def test_a_success_withdraws_the_kill() -> None:
    scene = outcome(requested(), "success", at=32_000)
    scene.then(WITHDRAWN, prober.ProbeSucceeded(**counted("Liveness", 1, 1, 32_000)))
    assert scene.effects
    scene.when(released(), at=33_000).then()


def test_a_failure_after_the_shortage_counts_immediately() -> None:
    scene = outcome(requested(), "failure", at=32_000, output="no")
    scene.then(
        WITHDRAWN,
        prober.ProbeFailed(**counted("Liveness", 3, 3, 32_000, output="no", held=True)),
        changed("Liveness", "failure", consecutive=3, threshold=3, output="no"),
    )
    assert scene.effects == {}


def test_the_end_of_the_container_or_its_probing_withdraws_the_kill() -> None:
    ends = (
        exited(),
        stopping("Deleted"),
        pod.ProbingWithdrawn(attempt=0, probe="Liveness", **REF),
        probing.wanted(attempt=1, id="k1", started_at=30_000),
        probing.wanted(definition=Probe(failure_threshold=9)),
    )
    for message in ends:
        scene = requested().when(message, at=30_000)
        assert scene.kinds[0] == "KillWithdrawn", message
        assert scene.state is None or not scene.state.asked
        assert scene.state is None or scene.state.held is False


def test_the_prober_subscribes_to_releases() -> None:
    route = kind().subscribes[pleg.ProbeKillReleased]
    assert route(released()) == ("default/web/app/Liveness",)


def test_attempts_stay_unjudged_for_the_limit_and_a_minimum_count() -> None:
    patience = Patience(10_000)
    assert not patience.succeeded()
    assert [patience.unjudged(at) for at in (1_000, 2_000)] == [True, False]
    assert not patience.is_over(90_000), "there were only two attempts"
    patience.unjudged(3_000)
    assert patience.count == LEAST
    assert not patience.is_over(10_999)
    assert patience.is_over(11_000)
    assert patience.succeeded()
    assert patience.count == 0
    assert not patience.is_over(90_000)
    assert patience.unjudged(95_000), "the first outcome of a new run is reported"


def test_a_run_is_reported_at_intervals_and_another_worker_continues_it() -> None:
    patience = Patience(60_000)
    news = [at for at in range(0, 61_000, 1_000) if patience.unjudged(at)]
    assert news == [0, REPORT_MS, 2 * REPORT_MS, 3 * REPORT_MS, 4 * REPORT_MS]
    later = Patience(60_000, count=50, passed=50_000)
    assert not later.is_over(1_000)
    later.unjudged(1_000)
    assert later.passed(11_000) == 60_000
    assert later.is_over(11_000)


def test_a_worker_reports_the_first_failure_without_a_shortage() -> None:
    streak = Streak(Probe(failure_threshold=2))
    assert [streak.is_news("failure", at, short=True) for at in (0, 1, 2)] == [True, True, False]
    assert [streak.is_news("failure", at) for at in (3, 4)] == [True, False]
    assert [streak.is_news("failure", at, short=True) for at in (5, 6)] == [False, False]
    assert not streak.is_news("failure", 7)
    assert streak.is_news("success", 8, short=True)
    assert not streak.is_news("success", 9)


def hangs(step: int, threshold: int) -> tuple[int, int, int]:
    """Return when the first probe of a container began and ended, and when the result became failure, if all probes
    time out because of a stall. `step`: the period or the time-out, whichever is longer.
    """
    timeout = 1_000
    patience = Patience(LIMIT)
    scene = probing.probed(definition=Probe(failure_threshold=threshold), period_milliseconds=step)
    at = first = 2_000
    while True:
        ends = at + timeout
        if patience.is_over(ends):
            outcome(scene, "failure", at=ends)
        else:
            patience.unjudged(ends)
            unjudged(scene, patience.count, patience.passed(ends), ends)
        if scene.state.result == "failure":
            return first, first + timeout, ends
        at += step


@pytest.mark.parametrize("step", [1_000, 1_700, 10_000, 90_000])
@pytest.mark.parametrize("threshold", [1, 3])
def test_a_hanging_container_on_a_stalled_machine_fails_within_the_documented_bound(step: int, threshold: int) -> None:
    began, _, failed = hangs(step, threshold)
    assert failed - began <= max(LIMIT, LEAST * step) + (threshold + 1) * step + 1_000


@pytest.mark.parametrize("step", [1_000, 1_700, 10_000, 90_000])
@pytest.mark.parametrize("threshold", [1, 3])
def test_a_healthy_container_in_a_stall_fails_no_earlier_than_documented(step: int, threshold: int) -> None:
    _, ended, failed = hangs(step, threshold)
    assert failed - ended >= max(LIMIT, LEAST * step) + (threshold - 1) * step


def test_by_default_a_healthy_container_is_stopped_after_a_stall_of_two_minutes() -> None:
    _, ended, failed = hangs(1_000, 3)
    settings = Settings(node="n", root_dir=Path("/"))
    assert settings.probe_unjudged_limit == LIMIT
    assert failed + settings.probe_kill_hold - ended == 122_000
