"""A probe's life: start, results, hold, end."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronolet.kernel.decider import Due
from chronolet.prober import signals, wanted
from chronolet.prober.actor import kind
from chronolet.prober.decider import DECIDER
from chronolet_schemas import pleg, pod, prober
from chronolet_schemas.podspec import ExecAction, Probe
from tests.deciders.given import Scene, given
from tests.deciders.prober import probing
from tests.deciders.prober.probing import DEFINITION, FIELD, REF, changed, counted, exited, of_probe, outcome, stopping

INITIAL = {"Liveness": "success", "Readiness": "failure", "Startup": "unknown"}


@pytest.mark.parametrize("probe", INITIAL)
def test_a_probe_starts_with_its_initial_value(probe: prober.ProbeName) -> None:
    began: dict[str, Any] = {"attempt": 0, "id": "k0", "started_at": 1_000, "ip": "10.0.0.5", "started": True}
    definition: dict[str, Any] = {"definition": DEFINITION, "restarts": "Always", "period_milliseconds": 10_000}
    probing.probed(probe).then(
        prober.ProbeAdded(field=FIELD, probe=probe, **definition, **REF),
        prober.ProbingBegan(from_at=1_000, probe=probe, **began, **REF),
        changed(probe, INITIAL[probe]),  # type: ignore[arg-type]
    )


def test_the_effect_has_what_the_worker_needs() -> None:
    scene = probing.probed("Readiness", definition=Probe(exec=ExecAction(command=("x",)), initial_delay_seconds=7))
    assert scene.effects == {
        "worker": wanted.RunProbe(
            subject="worker",
            intent="k0/1000/0",
            probe="Readiness",
            attempt=0,
            id="k0",
            definition=Probe(exec=ExecAction(command=("x",)), initial_delay_seconds=7),
            period_milliseconds=10_000,
            ip="10.0.0.5",
            from_at=8_000,
            anchored=False,
            **REF,
        )
    }


def test_the_first_outcome_anchors_the_times_of_the_next() -> None:
    scene = outcome(probing.probed(), "success", at=2_345)
    (effect,) = scene.effects.values()
    assert isinstance(effect, wanted.RunProbe)
    assert (effect.from_at, effect.anchored, effect.intent) == (2_345, True, "k0/1000/0")
    (effect,) = outcome(scene, "failure", at=12_345).effects.values()
    assert isinstance(effect, wanted.RunProbe)
    assert effect.from_at == 2_345


def test_readiness_changes_with_the_first_success_and_the_third_failure() -> None:
    scene = probing.probed("Readiness")
    outcome(scene, "success", at=2_000).then(
        prober.ProbeSucceeded(**counted("Readiness", 1, 1, 2_000)),
        changed("Readiness", "success", consecutive=1, threshold=1),
    )
    outcome(scene, "success", at=12_000).then()
    for at, consecutive in ((22_000, 1), (32_000, 2)):
        outcome(scene, "failure", at=at, output="no", code=503).then(
            prober.ProbeFailed(**counted("Readiness", consecutive, 3, at, output="no", code=503))
        ).then_kube_events(("Unhealthy", "Readiness probe failed: no"))
    outcome(scene, "failure", at=42_000, output="no", code=503).then(
        prober.ProbeFailed(**counted("Readiness", 3, 3, 42_000, output="no", code=503)),
        changed("Readiness", "failure", consecutive=3, threshold=3, output="no", code=503),
    )
    assert scene.recorded[0].field_path == FIELD
    assert scene.recorded[0].severity == "Warning"
    outcome(scene, "failure", at=52_000).then().then_kube_events()
    assert scene.effects, "probing continues"


def test_liveness_stays_failed_until_the_next_container() -> None:
    scene = probing.probed()
    for at in (1_000, 11_000):
        outcome(scene, "failure", at=at)
    outcome(scene, "failure", at=21_000).then(
        prober.ProbeFailed(**counted("Liveness", 3, 3, 21_000, held=True)),
        changed("Liveness", "failure", consecutive=3, threshold=3),
    )
    assert scene.effects == {}
    scene.when(probing.wanted(attempt=1, id="k1", started_at=30_000), at=30_000)
    assert scene.kinds == ["ProbingBegan", "ResultChanged"]
    assert scene.effects["worker"].intent == "k1/30000/0"
    outcome(scene, "failure", at=30_000)
    assert scene.only(prober.ProbeFailed).consecutive == 1, "the hold reset the streak"


def test_a_streak_continues_in_the_next_container() -> None:
    scene = probing.probed()
    for at in (1_000, 11_000):
        outcome(scene, "failure", at=at)
    scene.when(exited(), at=12_000).when(probing.wanted(attempt=1, id="k1", started_at=13_000), at=13_000)
    outcome(scene, "failure", at=13_000)
    assert scene.only(prober.ResultChanged).result == "failure"
    assert scene.only(prober.ResultChanged).id == "k1"


def test_a_capped_streak_still_changes_the_result_of_the_next_container() -> None:
    scene = outcome(probing.probed("Readiness"), "success", at=1_000)
    scene.when(probing.wanted("Readiness", attempt=1, id="k1", started_at=13_000), at=13_000)
    outcome(scene, "success", at=13_000)
    assert scene.kinds == ["ProbeSucceeded", "ResultChanged"]


def test_the_first_outcome_of_a_container_is_an_event_without_a_change() -> None:
    scene = outcome(probing.probed("Liveness"), "success", at=1_000)
    scene.when(probing.wanted(attempt=1, id="k1", started_at=13_000), at=13_000)
    outcome(scene, "success", at=13_000)
    assert scene.kinds == ["ProbeSucceeded"]
    outcome(scene, "success", at=23_000).then()


@pytest.mark.parametrize("result", ["success", "failure"])
def test_a_startup_probe_ends_with_its_result(result: Any) -> None:
    scene = probing.probed("Startup", started=False, definition=Probe(failure_threshold=1))
    outcome(scene, result, at=2_000)
    assert scene.facts[0].held  # type: ignore[attr-defined]
    assert scene.only(prober.ResultChanged).result == result
    assert scene.effects == {}


def test_other_probes_wait_for_the_startup_probe() -> None:
    scene = probing.probed("Readiness", started=False)
    assert scene.effects == {}
    scene.when(of_probe("Startup", "unknown"), at=3_000).then()
    scene.when(of_probe("Liveness", "success"), at=3_000).then()
    scene.when(replace(of_probe("Startup", "success"), started_at=900), at=3_000).then()
    scene.when(of_probe("Startup", "success"), at=5_000).then(
        prober.GateOpened(id="k0", from_at=5_000, probe="Readiness", **REF)
    )
    assert scene.effects
    scene.when(of_probe("Startup", "success"), at=6_000).then()


def test_the_startup_gate_opens_during_the_initial_delay() -> None:
    scene = probing.probed(started=False, definition=Probe(initial_delay_seconds=60))
    scene.when(of_probe("Startup", "success"), at=5_000)
    assert scene.only(prober.GateOpened).from_at == 61_000


def test_a_startup_probe_is_not_run_once_the_container_counts_as_started() -> None:
    scene = probing.probed("Startup", started=False)
    assert scene.effects
    scene.when(of_probe("Startup", "success"), at=5_000)
    assert scene.effects == {}


def test_an_error_counts_as_nothing_and_is_reported_at_intervals() -> None:
    scene = outcome(probing.probed("Readiness"), "failure", at=1_000)
    outcome(scene, "error", at=11_000, output="no such exec").then(
        prober.ProbeErrored(id="k0", at=11_000, milliseconds=5, output="no such exec", probe="Readiness", **REF)
    ).then_kube_events(("Unhealthy", "Readiness probe errored and resulted in unknown state: no such exec"))
    outcome(scene, "error", at=21_000).then()
    outcome(scene, "error", at=311_000)
    assert scene.kinds == ["ProbeErrored"]
    outcome(scene, "failure", at=321_000)
    assert scene.only(prober.ProbeFailed).consecutive == 2
    outcome(scene, "error", at=322_000)
    assert scene.kinds == ["ProbeErrored"], "it is reported again after another outcome"


def test_unknown_counts_as_failure_and_is_not_reported() -> None:
    scene = outcome(probing.probed(definition=Probe(failure_threshold=1)), "unknown", at=2_000)
    scene.then(
        prober.ProbeFailed(unknown=True, **counted("Liveness", 1, 1, 2_000, held=True)),
        changed("Liveness", "failure", consecutive=1, threshold=1),
    ).then_kube_events()


def test_a_warning_counts_as_success_and_is_reported() -> None:
    scene = outcome(probing.probed("Readiness"), "warning", at=2_000, output="elsewhere")
    assert scene.only(prober.ResultChanged).result == "success"
    scene.then_kube_events(("ProbeWarning", "Readiness probe warning: elsewhere"))
    outcome(scene, "warning", at=12_000, output="elsewhere").then()
    outcome(scene, "warning", at=302_000, output="elsewhere").then_kube_events(
        ("ProbeWarning", "Readiness probe warning: elsewhere")
    )


def test_a_lasting_failure_is_reported_at_intervals() -> None:
    scene = probing.probed("Readiness", definition=Probe(failure_threshold=1))
    outcome(scene, "failure", at=1_000)
    outcome(scene, "failure", at=300_999).then()
    outcome(scene, "failure", at=301_000, output="still").then(
        prober.ProbeFailed(**counted("Readiness", 1, 1, 301_000, output="still"))
    ).then_kube_events(("Unhealthy", "Readiness probe failed: still"))
    outcome(scene, "failure", at=200_000)
    assert scene.kinds == ["ProbeFailed"], "the clock was set back"


@pytest.mark.parametrize(
    ("restarts", "code", "restarts_again"),
    [("Always", 0, True), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Never", 1, False)],
)
def test_the_result_of_a_dead_container_is_failure(restarts: str, code: int, restarts_again: bool) -> None:
    scene = outcome(probing.probed("Readiness", restarts=restarts), "success")
    ended = prober.ProbingPaused if restarts_again else prober.ProbingEnded
    scene.when(exited(code), at=9_000).then(changed("Readiness", "failure"), ended(id="k0", probe="Readiness", **REF))
    assert scene.effects == {}
    scene.when(exited(code), at=9_500).then()


def test_the_end_of_a_container_that_was_not_ready_changes_nothing() -> None:
    assert probing.probed("Readiness").when(exited()).kinds == ["ProbingPaused"]


def test_a_container_that_waits_for_its_restart_counts_as_dead() -> None:
    waits = pod.RestartScheduled(attempt=0, at=5_000, back_off_seconds=10, next_back_off_seconds=20, **REF)
    assert probing.probed().when(waits).kinds == ["ResultChanged", "ProbingPaused"]


@pytest.mark.parametrize("probe", ["Liveness", "Startup"])
def test_a_terminating_pod_ends_liveness_and_startup_with_success(probe: Any) -> None:
    scene = outcome(probing.probed(probe, started=probe == "Liveness"), "failure", at=1_000)
    expected = [] if probe == "Liveness" else [changed(probe, "success")]
    scene.when(stopping("Deleted")).then(*expected, prober.ProbingEnded(id="k0", probe=probe, **REF))
    assert scene.effects == {}
    scene.when(exited()).then()


def test_a_container_stopped_for_its_failure_keeps_the_result() -> None:
    scene = outcome(probing.probed(definition=Probe(failure_threshold=1)), "failure")
    scene.when(stopping("LivenessFailed")).then(prober.ProbingEnded(id="k0", probe="Liveness", **REF))
    assert scene.state.result == "failure"


def test_readiness_is_probed_to_the_end() -> None:
    scene = outcome(probing.probed("Readiness"), "success")
    scene.when(stopping("Deleted")).then()
    assert scene.effects


def test_events_of_other_containers_and_uids_are_ignored() -> None:
    scene = probing.probed()
    waits = pod.RestartScheduled(attempt=3, at=5_000, back_off_seconds=10, next_back_off_seconds=20, **REF)
    for message in (replace(exited(), id="k9"), replace(stopping("Superseded"), id="k9"), waits):
        scene.when(message).then()
    assert scene.effects


def test_outcomes_of_an_outdated_worker_are_ignored() -> None:
    scene = probing.probed()
    scene.when(signals.ProbeOutcome(intent="k9/1/0", outcome="failure", at=1_000, milliseconds=1)).then()
    scene.when(signals.ProbeLate(intent="k9/1/0", late_milliseconds=9)).then()


def test_late_probes_are_reported() -> None:
    scene = probing.probed()
    (effect,) = scene.effects.values()
    scene.when(signals.ProbeLate(intent=effect.intent, late_milliseconds=2_500, agent_late_milliseconds=400)).then(
        prober.ProbeDelayed(id="k0", late_milliseconds=2_500, agent_late_milliseconds=400, probe="Liveness", **REF)
    )


def test_a_changed_definition_applies_immediately_and_keeps_the_streak() -> None:
    scene = outcome(probing.probed(), "failure", at=1_000)
    other = Probe(exec=ExecAction(command=("other",)), failure_threshold=2)
    scene.when(probing.wanted(definition=other), at=2_000)
    assert scene.kinds == ["ProbeAdded"]
    assert scene.effects["worker"].intent == "k0/1000/1"
    outcome(scene, "failure", at=11_000)
    assert scene.only(prober.ResultChanged).consecutive == 2


def test_a_repeated_request_is_ignored() -> None:
    probing.probed().when(probing.wanted()).then()


def test_a_startup_probe_added_later_closes_the_gate() -> None:
    scene = outcome(probing.probed("Readiness"), "success")
    scene.when(probing.wanted("Readiness", started=False))
    assert scene.kinds == ["ProbingBegan", "ResultChanged"]
    assert scene.effects == {}


def test_another_run_of_the_same_container_counts_as_another_container() -> None:
    scene = outcome(probing.probed("Readiness"), "success")
    scene.when(exited()).when(probing.wanted("Readiness", started_at=20_000), at=20_000)
    assert scene.kinds == ["ProbingBegan", "ResultChanged"]
    assert scene.effects


def test_a_new_uid_of_the_pod_starts_from_nothing() -> None:
    scene = outcome(probing.probed(), "failure", at=1_000)
    scene.when(probing.wanted(uid="u2", id="k5", started_at=50_000), at=50_000)
    assert scene.kinds == ["ProbeAdded", "ProbingBegan", "ResultChanged"]
    assert (scene.state.consecutive, scene.state.last, scene.state.change) == (0, "", 0)


def test_a_container_that_has_run_for_long_is_not_probed_immediately() -> None:
    scene = given(DECIDER).when(probing.wanted(started_at=1_000), at=500_000)
    assert 500_000 < scene.only(prober.ProbingBegan).from_at < 510_000


def test_a_withdrawn_probe_is_removed() -> None:
    scene = probing.probed()
    scene.when(pod.ProbingWithdrawn(attempt=0, probe="Liveness", **REF)).then(
        prober.ProbeRemoved(probe="Liveness", **REF)
    )
    assert scene.state is None


def test_a_probe_is_never_due() -> None:
    scene = probing.probed()
    assert scene.due is None
    assert DECIDER.decide(scene.state, Due(at=1), 1) == ()


def test_unknown_events_change_nothing() -> None:
    scene = probing.probed()
    event = pleg.ContainerStarted(pod="default/web", uid="u1", container="app", attempt=0, id="k0", started_at=1)
    assert DECIDER.evolve(scene.state, event) == scene.state


def test_messages_are_routed_to_their_probes() -> None:
    routes = kind().subscribes
    assert routes[pod.ProbingRequested](probing.wanted("Startup")) == ("default/web/app/Startup",)
    assert routes[pod.ContainerExited](exited()) == (
        "default/web/app/Liveness",
        "default/web/app/Readiness",
        "default/web/app/Startup",
    )


def test_a_failing_streak_is_reported_the_same_if_a_restart_interrupts_it() -> None:
    """A replay after any recorded outcome leads to the failure at the same count."""
    for cut in range(4):
        scene = probing.probed()
        for n in range(3):
            if n == cut:
                scene = Scene(DECIDER, scene.history)
            outcome(scene, "failure", at=1_000 + n * 10_000)
            assert ("ResultChanged" in scene.kinds) == (n == 2)
