"""Wherever an agent or its Redis is killed in the life of a pod, the run's record equals that of the reference run.

The crash points are taken from a recorded run. A short test kills the agent once for each event type and each outside
call, alternately before and after it, and Redis at every other of these points. A long test kills both at every point,
including those of a back-off that is waited out. The full pod, which has an init container, a sidecar and hooks and is
changed while it runs, adds the points that the plain pod does not have.
"""

from collections.abc import Sequence

import pytest

from tests.e2e.crash_matrix.matrix import CONCURRENT_RUNS, KILL_TARGETS, Matrix, ReferenceRun, matrix, plans_at
from tests.e2e.crash_matrix.pod_run import Plan
from tests.e2e.fault_injection import points
from tests.e2e.fault_injection.points import Point
from tests.support.docker.engine import PrivateDocker

FILE = Plan()
APPLY = Plan(source="apply")
LOOPING = Plan(kills=2)
FULL = Plan(pod="full", source="apply", kills=0, changes=1)
PORT_TAKEN = Plan(kills=0, port_taken=True)
PROBE_FAILS = Plan(pod="probed", kills=0, probe_failures=1)
CONCURRENT = {
    f"pod.{one}"
    for one in (
        "SandboxCreated",
        "ContainerCreateRequested",
        "ContainerCreated",
        "SandboxStartFailed",
        "ContainerCreateFailed",
        "SandboxStarted",
    )
}
"""Events of a sandbox, and of the containers that are created for it at the same time."""
FULL_AND_LONG = Plan(pod="full", source="apply", kills=1, changes=2)


def check(runner: Matrix, least: int) -> None:
    verdict = runner.verdict
    assert not verdict.wrong, f"{len(verdict.wrong)} runs differ from the reference run:\n" + "\n".join(verdict.wrong)
    assert verdict.counts["agent kills"] >= least
    assert verdict.counts["redis kills"] >= least / 2.5
    # A few runs may miss their crash point twice.
    assert len(verdict.not_reached) <= verdict.counts["runs"] // 25, verdict.not_reached


def plans_for_both_targets(plan: Plan, at: Sequence[Point]) -> list[Plan]:
    return [each for target in KILL_TARGETS for each in plans_at(plan, at, target)]


def of_manifests(found: Sequence[Point]) -> list[Point]:
    """Return the points that only an applied pod has, not one from a file."""
    return [point for point in found if "manifests." in point.type]


def of_new_strata(found: Sequence[Point], known: Sequence[Point]) -> list[Point]:
    """Return the points whose strata do not occur in `known`."""
    strata = {point.stratum for point in known}
    return [point for point in found if point.stratum not in strata]


@pytest.mark.timeout(3600)
def test_a_kill_at_each_kind_of_point_changes_nothing(docker_engine: PrivateDocker) -> None:
    with matrix(docker_engine) as runner:
        reference = runner.reference_run(FILE)
        at = points.halved(points.sample(reference.points))
        runner.run(reference, [*plans_at(FILE, at, "agent"), *plans_at(FILE, at[::2], "redis")])
        applied = runner.reference_run(APPLY)
        at = points.sample(of_manifests(applied.points))
        runner.run(applied, plans_for_both_targets(APPLY, at))
        full = runner.reference_run(FULL)
        new = of_new_strata(full.points, [*reference.points, *applied.points])
        at = list(dict.fromkeys([*points.halved(points.sample(new)), *points.sample_of_hooks(new)]))
        assert len(full.result.record.hooks) == 5, full.result.record.hooks
        runner.run(full, plans_at(FULL, at, "agent"))
        check(runner, least=60)


def of_the_restart(reference: ReferenceRun) -> list[Point]:
    """Return one point from each stratum, between the first stop and the next start. A step that creates the successor
    is identified by that event, even if it has a rarer one, so that the creation is among the points.
    """
    names = reference.result.names
    stop = next(number for number, name in enumerate(names) if "pod.ContainerStopRequested" in name)
    up = next(number for number, name in enumerate(names) if number > stop and "pod.ContainerStarted" in name)
    passed = points.all_points(names, identified_by="pod.ContainerCreated")[stop : up + 2]
    return points.sample(point for point in passed if point in reference.common)


@pytest.mark.timeout(3600)
def test_a_failed_sandbox_is_removed_with_the_containers_created_for_it(docker_engine: PrivateDocker) -> None:
    with matrix(docker_engine) as runner:
        reference = runner.reference_run(PORT_TAKEN)
        at = points.of_creations(reference.result.names)
        assert {point.type for point in at} >= CONCURRENT, at
        runner.run(reference, plans_for_both_targets(PORT_TAKEN, at))
        check(runner, least=30)


@pytest.mark.timeout(3600)
def test_a_successor_created_while_its_predecessor_stops_runs_once(docker_engine: PrivateDocker) -> None:
    with matrix(docker_engine) as runner:
        reference = runner.reference_run(PROBE_FAILS)
        at = of_the_restart(reference)
        assert "pod.ContainerCreated" in {point.type for point in at}, at
        runner.run(reference, plans_for_both_targets(PROBE_FAILS, at))
        check(runner, least=20)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_kill_at_any_point_of_the_full_pod_changes_nothing(docker_engine: PrivateDocker) -> None:
    with matrix(docker_engine) as runner:
        full = runner.reference_run(FULL)
        runner.run(full, plans_for_both_targets(FULL, full.points))
        long = runner.reference_run(FULL_AND_LONG)
        # These runs mostly wait, so twice as many run concurrently.
        late = [one for one in long.points if one not in full.points]
        runner.run(
            long,
            [*plans_at(FULL_AND_LONG, late, "agent"), *plans_at(FULL_AND_LONG, points.sample(late), "redis")],
            2 * CONCURRENT_RUNS,
        )
        check(runner, least=400)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_kill_at_any_point_changes_nothing(docker_engine: PrivateDocker) -> None:
    with matrix(docker_engine) as runner:
        reference = runner.reference_run(FILE)
        runner.run(reference, plans_for_both_targets(FILE, reference.points))
        applied = runner.reference_run(APPLY)
        runner.run(applied, plans_for_both_targets(APPLY, of_manifests(applied.points)))
        looping = runner.reference_run(LOOPING)
        # These runs mostly wait, so twice as many run concurrently.
        runner.run(
            looping,
            plans_for_both_targets(LOOPING, [one for one in looping.points if one not in reference.points]),
            2 * CONCURRENT_RUNS,
        )
        check(runner, least=120)
