"""What-if answers about pods equal what a node decides that has the change, as long as they call themselves exact."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from chronolet.node.whatif.wanted import ChangeError
from chronolet.prober.signals import ProbeOutcome
from chronolet_schemas import codec, data_fields, kernel
from chronolet_schemas.podspec import ExecAction, Pod, Probe
from chronolet_schemas.prober import Outcome, ProbeName
from tests.deciders.pod.life import POD, container, manifest
from tests.node.whatif.questions import Answer, ask, lived
from tests.support import redecided
from tests.support.recorded_node import NOON, RecordedNode

PERIOD = 10_000
FIELDS: dict[ProbeName, str] = {"Liveness": "livenessProbe", "Readiness": "readinessProbe", "Startup": "startupProbe"}
ATTRIBUTES: dict[ProbeName, str] = {
    "Liveness": "liveness_probe",
    "Readiness": "readiness_probe",
    "Startup": "startup_probe",
}
OUTCOMES: st.SearchStrategy[list[Outcome]] = st.lists(st.sampled_from(("success", "failure", "error")), max_size=14)


def probe(failures: int = 3, successes: int = 1) -> Probe:
    return Probe(exec=ExecAction(command=("x",)), failure_threshold=failures, success_threshold=successes)


def probed(name: ProbeName, one: Probe, **more: Any) -> Pod:
    fields: dict[str, Any] = {ATTRIBUTES[name]: one}
    return manifest(container(**fields), **more)


def ran(one: Pod, name: ProbeName, outcomes: Sequence[Outcome], **with_settings: Any) -> RecordedNode:
    """Return a node whose pod's probe had these outcomes, one in each period in which it ran."""
    node = RecordedNode()
    node.start(**with_settings)
    node.apply(one)
    for outcome in outcomes:
        node.passes(PERIOD)
        node.probe(outcome, POD, name)
    assert redecided.check_node(node.server.log, skips=True).decisions
    return node


def asked(
    name: ProbeName, outcomes: Sequence[Outcome], before: int, after: int, field: str
) -> tuple[Answer, list[str]]:
    """Return an answer about a threshold, and what a node with that threshold does."""
    failing = field == "failureThreshold"

    def with_threshold(number: int) -> Pod:
        return probed(name, probe(number) if failing else probe(successes=number))

    answer = ask(ran(with_threshold(before), name, outcomes), f"pod/web/app.{FIELDS[name]}.{field}={after}")
    return answer, lived(ran(with_threshold(after), name, outcomes))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(("Liveness", "Startup")), OUTCOMES, st.integers(1, 4), st.integers(1, 4))
def test_probes_that_stop_containers(name: ProbeName, outcomes: list[Outcome], before: int, after: int) -> None:
    answer, live = asked(name, outcomes, before, after, "failureThreshold")
    assert answer.exact == live[: len(answer.exact)]
    if answer.runs.first is None and not answer.runs.assumed:
        assert answer.exact == live


@settings(max_examples=150, deadline=None)
@given(OUTCOMES, st.integers(1, 4), st.integers(1, 4), st.sampled_from(("failureThreshold", "successThreshold")))
def test_readiness_changes_nothing_outside(outcomes: list[Outcome], before: int, after: int, field: str) -> None:
    answer, live = asked("Readiness", outcomes, before, after, field)
    assert answer.runs.first is None
    assert answer.exact == live[: len(answer.exact)]
    if "error" not in outcomes:  # then each outcome that the log leaves out is known
        ready = ("ready", "not ready")
        assert [one for one in answer.changed if one in ready] == [one for one in live if one in ready]
    if not answer.runs.assumed:
        assert answer.exact == live


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 40_000), min_size=1, max_size=6), st.integers(1, 60), st.integers(1, 60))
def test_the_back_off(lives: list[int], before: int, after: int) -> None:
    def crashed(seconds: int) -> RecordedNode:
        node = RecordedNode()
        node.start(max_container_restart_period=seconds * 1000)
        node.apply(manifest())
        for milliseconds in lives:
            node.passes(milliseconds)
            node.dies(POD)
            node.passes(60_000)
        return node

    answer, live = ask(crashed(before), f"max-container-restart-period={after}s"), lived(crashed(after))
    assert answer.exact == live[: len(answer.exact)]
    if answer.runs.first is None:
        assert answer.exact == live


def test_fewer_restarts_are_counted_next_to_what_happened() -> None:
    node = ran(probed("Liveness", probe(1)), "Liveness", ["failure", "success", "failure", "success", "failure"])
    answer = ask(node, "pod/web/app.livenessProbe.failureThreshold=2")
    assert answer.counted("restarts") == (2, 0)
    assert answer.counted("stops for a failed probe") == (3, 0)
    first = next(row for row in answer.rows if row.recorded.startswith("stopped: "))
    assert (first.changed, first.certainty) == ("", "exact")
    assert {row.certainty for row in answer.rows if row.at > first.at} == {"estimate"}


def test_a_container_that_only_the_change_kills_starts_again_after_its_back_off() -> None:
    node = ran(probed("Liveness", probe(9)), "Liveness", ["failure"] * 5)
    answer = ask(node, "pod/web/app.livenessProbe.failureThreshold=1")
    assert answer.counted("restarts") == (0, 2)
    # The outcome at 30 s finds the container just started.
    assert [row.changed for row in answer.rows if row.changed.startswith("restart")] == [
        "restart immediately, the next after 10 s",
        "restart after a back-off of 10 s, the next after 20 s",
        "restart after a back-off of 20 s, the next after 40 s",
    ]


@pytest.mark.parametrize(("seconds", "restarts"), [((300, 1, 300), 2), ((1, 300, 1), 5)])
def test_the_back_off_of_an_estimate_is_that_of_the_agent_that_runs_then(seconds: Sequence[int], restarts: int) -> None:
    node = RecordedNode()
    for number, each in enumerate(seconds):
        node.start(max_container_restart_period=each * 1000)
        if not number:
            node.apply(probed("Liveness", probe(9)))
        node.passes(PERIOD)
        node.probe("success" if number < len(seconds) - 1 else "failure", POD)
    for _ in range(4):
        node.passes(PERIOD)
        node.probe("failure", POD)
    answer = ask(node, "pod/web/app.livenessProbe.failureThreshold=1")
    assert answer.counted("restarts") == (0, restarts)


def test_a_run_that_has_not_ended_in_the_record_does_not_end_in_the_estimate() -> None:
    node = RecordedNode()
    node.start()
    node.apply(manifest())
    for _ in range(3):
        node.passes(1_000)
        node.dies(POD)
        node.passes(60_000)
    node.passes(3_600_000)
    assert ask(node, "max-container-restart-period=1s").counted("restarts") == (3, 3)


def test_a_container_that_only_the_change_restarts_is_probed_after_its_initial_delay() -> None:
    one = Probe(exec=ExecAction(command=("x",)), failure_threshold=9, initial_delay_seconds=25)
    answer = ask(
        ran(probed("Liveness", one), "Liveness", ["failure"] * 7), "pod/web/app.livenessProbe.failureThreshold=1"
    )
    stops = [row.at - NOON for row in answer.rows if row.changed.startswith("stopped: ")]
    assert stops == [10_000, 40_000]  # started at once, and at 50 s


def test_the_same_threshold_changes_nothing() -> None:
    answer = ask(
        ran(probed("Liveness", probe(2)), "Liveness", ["failure", "failure", "success"]),
        "pod/default/web/app.livenessProbe.failureThreshold=2",
    )
    assert answer.runs.first is None
    assert {row.certainty for row in answer.rows} == {"exact"}
    assert [row.recorded for row in answer.rows] == [row.changed for row in answer.rows]
    assert answer.counted("restarts") == (1, 1)


def test_without_its_liveness_probe_the_container_is_not_stopped() -> None:
    node = ran(probed("Liveness", probe(1)), "Liveness", ["failure", "failure"])
    answer = ask(node, manifests={POD: manifest()})
    assert answer.counted("stops for a failed probe") == (2, 0)
    assert answer.counted("restarts") == (1, 0)


def test_with_another_restart_policy_a_container_stays_dead() -> None:
    node = RecordedNode()
    node.start()
    node.apply(manifest())
    node.passes(1_000)
    node.dies(POD)
    node.passes(1_000)
    answer = ask(node, manifests={POD: manifest(restart_policy="Never")})
    assert answer.counted("restarts") == (1, 0)
    assert answer.unknown == []


@pytest.mark.parametrize("code", [0, 3])
def test_a_container_that_is_stopped_for_a_failed_probe_is_restarted_whatever_its_exit_code(code: int) -> None:
    node = RecordedNode()
    node.stopped_code = code
    node.start()
    node.apply(probed("Liveness", probe(2), restart_policy="OnFailure"))
    for _ in range(3):
        node.passes(PERIOD)
        node.probe("failure", POD)
    node.passes(5_000)
    answer = ask(node, "pod/web/app.livenessProbe.failureThreshold=1")
    assert answer.counted("restarts") == (1, 2)  # the third failure finds a container that has just been restarted


def test_a_change_is_in_force_from_the_beginning_of_the_range() -> None:
    node = ran(probed("Liveness", probe(2)), "Liveness", ["failure", "failure"])
    middle = node.server.last
    for _ in range(3):
        node.passes(PERIOD)
        node.probe("failure", POD)
    answer = ask(node, "pod/web/app.livenessProbe.failureThreshold=9", after=middle)
    assert answer.counted("stops for a failed probe") == (1, 0)
    assert "started (attempt 0)" not in answer.changed


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_difference_at_the_beginning_of_the_range_needs_no_later_decision(*, goes_on: bool) -> None:
    node = ran(probed("Liveness", probe(9)), "Liveness", ["failure"])
    begin, since = node.server.last, node.now
    if goes_on:
        node.passes(PERIOD)
        node.probe("failure", POD)
    answer = ask(node, manifests={POD: manifest()}, after=begin)
    assert answer.runs.first is not None
    assert answer.runs.first.at == since
    assert answer.exact == []


def test_a_pod_that_ends_is_estimated_up_to_its_end() -> None:
    node = ran(probed("Liveness", probe(1)), "Liveness", ["failure", "success"])
    node.withdraw(POD)
    answer = ask(node, "pod/web/app.livenessProbe.failureThreshold=3")
    assert any("after TerminationRequested in the log" in one for one in answer.unknown)


@pytest.mark.parametrize(("later", "stops"), [(0, 1), (1, 2)])
def test_nothing_is_estimated_at_the_time_at_which_the_pod_ends(later: int, stops: int) -> None:
    node = ran(probed("Liveness", probe(9)), "Liveness", ["failure"] * 2)
    node.passes(later)
    node.withdraw(POD)
    answer = ask(node, "pod/web/app.livenessProbe.failureThreshold=1")
    assert answer.counted("stops for a failed probe") == (0, stops)


def applied_twice(threshold: int, outcomes: Sequence[Outcome], *, withdrawn: bool) -> RecordedNode:
    """Return a node whose pod was applied, withdrawn or not, and applied again; its probe had the same outcomes both
    times.
    """
    node = RecordedNode()
    node.start()
    for uid in ("u1", "u2"):
        node.apply(probed("Liveness", probe(threshold)), uid=uid)
        for outcome in outcomes:
            node.passes(PERIOD)
            node.probe(outcome, POD)
        node.passes(1_000)
        if withdrawn:
            node.withdraw(POD, uid=uid)
            node.passes(PERIOD)
    return node


@pytest.mark.parametrize("withdrawn", [True, False])
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (2, 9)])
def test_a_pod_that_is_applied_again_is_decided_again_with_the_change(
    before: int, after: int, *, withdrawn: bool
) -> None:
    outcomes: list[Outcome] = ["failure"] * 3
    node = applied_twice(before, outcomes, withdrawn=withdrawn)
    answer = ask(node, f"pod/web/app.livenessProbe.failureThreshold={after}")
    assert answer.exact == lived(applied_twice(after, outcomes, withdrawn=withdrawn))[: len(answer.exact)]
    assert answer.counted("stops for a failed probe") == (2 * (before <= 3), 2 * (after <= 3))
    counts = {row.changed.rpartition(" of ")[2] for row in answer.rows if " probe failed" in row.changed}
    assert counts == {str(after)}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("pod/db/app.livenessProbe.failureThreshold=2", "pod/default/db: found no such pod between the two moments"),
        (
            "pod/web/ap.livenessProbe.failureThreshold=2",
            "pod/default/web/ap: found no such container, expected one of app",
        ),
        ("pod/web/app.startupProbe.failureThreshold=2", "found a container without startupProbe, expected one"),
        ("image-gc-high-threshold=70", "the log has no decision of the actor image_gc between the two moments"),
        ("maximum-dead-containers=70", ""),
    ],
)
def test_what_the_log_does_not_have(change: str, found: str) -> None:
    node = ran(probed("Liveness", probe(1)), "Liveness", ["failure"])
    if not found:
        ask(node, change)
        return
    with pytest.raises(ChangeError, match=re.escape(found)):
        ask(node, change)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            manifest(container(image="busybox:2", liveness_probe=probe(1))),
            "spec.containers[app].image: found 'busybox:2'",
        ),
        (
            probed("Liveness", Probe(exec=ExecAction(command=("x",)), failure_threshold=1, period_seconds=3)),
            "app.livenessProbe.periodSeconds: found 3 instead of 10, but the log has only the outcomes",
        ),
        (
            manifest(container(liveness_probe=probe(1), readiness_probe=probe())),
            "app.readinessProbe: found a new probe, but the log has no outcomes of it",
        ),
        (manifest(container("other")), "spec.containers[app].name"),
    ],
)
def test_a_manifest_of_which_the_log_knows_nothing(given: Pod, found: str) -> None:
    node = ran(probed("Liveness", probe(1)), "Liveness", ["failure"])
    with pytest.raises(ChangeError, match=re.escape(found)):
        ask(node, manifests={POD: given})


@pytest.mark.parametrize(
    "earlier",
    [
        manifest(container(image="busybox:0", liveness_probe=probe(1))),
        manifest(),
        probed("Liveness", Probe(exec=ExecAction(command=("x",)), failure_threshold=1, period_seconds=3)),
    ],
)
def test_an_earlier_manifest_of_which_the_log_knows_nothing_can_be_left_out(earlier: Pod) -> None:
    node = RecordedNode()
    node.start()
    node.apply(earlier)
    node.withdraw(POD)
    begin = node.server.last
    node.apply(probed("Liveness", probe(1)), uid="u2")
    node.passes(PERIOD)
    node.probe("failure", POD)
    given = {POD: probed("Liveness", probe(2))}
    with pytest.raises(ChangeError, match="if the pod was changed later, choose --from after that"):
        ask(node, manifests=given)
    assert ask(node, manifests=given, after=begin).counted("stops for a failed probe") == (1, 0)


def test_damaged_entries_are_named_and_the_rest_is_answered() -> None:
    node = ran(probed("Liveness", probe(1)), "Liveness", ["failure", "success", "failure"])
    at = next(n for n, entry in enumerate(node.server.log) if entry.type.startswith("prober.ProbeSucceeded"))
    node.server.log[at] = node.server.log[at]._replace(data=b"\xc1")
    answer = ask(node, "pod/web/app.livenessProbe.failureThreshold=2")
    assert any(one.startswith("what the log says in 1 entry that cannot be read; see") for one in answer.unknown)
    assert answer.counted("stops for a failed probe")[0] == 2
    assert answer.runs.assumed


def test_decisions_that_differ_even_without_the_change_are_not_exact() -> None:
    node = RecordedNode()
    node.start(max_container_restart_period=1_000)
    del node.server.log[0]  # the usual settings are assumed instead
    node.apply(manifest(container(liveness_probe=probe(9))))
    node.passes(1_000)
    node.dies(POD)
    answer = ask(node, "pod/web/app.livenessProbe.failureThreshold=8")
    assert any(" of 1 decision not made again as recorded even without it; " in one for one in answer.unknown)
    assert answer.runs.assumed
    assert answer.exact == []


def test_decisions_without_recorded_inputs_are_taken_as_recorded() -> None:
    node = ran(probed("Liveness", probe(1)), "Liveness", ["failure"])
    node.server.log[:] = [
        entry._replace(data=data_fields.parts(entry.data).plain) if entry.entity == f"pod/{POD}" else entry
        for entry in node.server.log
    ]
    answer = ask(node, "pod/web/app.readinessProbe.failureThreshold=2", "max-container-restart-period=9s", check=False)
    assert any(re.match(r"what led to \d+ decisions taken as recorded, of which", one) for one in answer.unknown)
    assert answer.exact == []


def test_settings_that_cannot_be_read_are_named() -> None:
    node = ran(probed("Liveness", probe(1)), "Liveness", ["failure"])
    started = kernel.ProcessStarted(process="p9", kinds=[], settings={"max_pods": "many"}, settings_digest="d")
    at = node.server.log[0]
    node.server.log.insert(1, at._replace(data=codec.encode(started), position=at.position))
    answer = ask(node, "pod/web/app.livenessProbe.failureThreshold=2")
    assert any(one.startswith("what the log says in 1 entry that cannot be read; see") for one in answer.unknown)


def test_two_pods_that_differ_from_the_beginning_of_the_range() -> None:
    node = RecordedNode()
    node.start()
    for name in ("a", "b"):
        one = probed("Liveness", probe(1))
        node.apply(replace(one, metadata=replace(one.metadata, name=name)), uid=name)
    begin = node.server.last
    plain = {
        f"default/{name}": replace(manifest(), metadata=replace(manifest().metadata, name=name)) for name in ("a", "b")
    }
    for name in ("a", "b"):
        node.passes(PERIOD)
        node.probe("failure", f"default/{name}")
    answer = ask(node, manifests=plain, after=begin)
    assert answer.counted("stops for a failed probe") == (2, 0)
    assert answer.counted("restarts") == (2, 0)


def test_nothing_is_exact_after_a_kill_that_only_the_change_asks_for() -> None:
    node = RecordedNode()
    node.start()
    for name in ("a", "b"):
        one = probed("Liveness", probe(3))
        node.apply(replace(one, metadata=replace(one.metadata, name=name)), uid=name)
    node.passes(PERIOD)
    key = "default/b/app/Liveness"
    (worker,) = node.kinds["prober"].decider.outstanding(node.states["prober"][key])
    short = ProbeOutcome(
        intent=worker.intent, outcome="failure", at=node.now, milliseconds=5, output="x", short_of=("cpu",)
    )
    node.tell("prober", key, short)
    for _ in range(2):
        node.passes(PERIOD)
        node.probe("failure", "default/a")
    answer = ask(node, "pod/a/app.livenessProbe.failureThreshold=9", "pod/b/app.livenessProbe.failureThreshold=1")
    assert answer.counted("stops for a failed probe") == (0, 1)
    assert {row.certainty for row in answer.rows if row.at > NOON + PERIOD} == {"estimate"}
