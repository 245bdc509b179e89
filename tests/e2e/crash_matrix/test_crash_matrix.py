"""Wherever an agent or its Redis is killed in the life of a pod, the pod lives as its twin does, to the event.

The points are taken from a recorded life. A short run has one life for each event type and each outside call, before it
and after it by turns, for the agent, and for every other one for Redis; a long one has every point for both, and
those of a back-off that is waited out. The whole life of a pod with an init container, a sidecar and hooks, which is
changed on its way, adds the points that the plain pod has not.
"""

from collections.abc import Sequence

import pytest

from tests.e2e.crash_matrix.matrix import AT_ONCE, VICTIMS, Matrix, Twin, blows, matrix
from tests.e2e.crash_matrix.pod_run import Plan
from tests.e2e.fault_injection import points
from tests.e2e.fault_injection.points import Point
from tests.support.docker import PrivateDocker

FILE = Plan()
APPLY = Plan(source="apply")
LOOPING = Plan(kills=2)
WHOLE = Plan(pod="whole", source="apply", kills=0, changes=1)
TAKEN = Plan(kills=0, taken=True)
BROKEN = Plan(pod="probed", kills=0, breaks=1)
SIDE_BY_SIDE = {
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
"""What happens to a sandbox and, next to it, to the containers that are created for it."""
WHOLE_AND_LONG = Plan(pod="whole", source="apply", kills=1, changes=2)


def judged(done: Matrix, least: int) -> None:
    verdict = done.verdict
    assert not verdict.wrong, f"{len(verdict.wrong)} lives went wrong:\n" + "\n".join(verdict.wrong)
    assert verdict.counts["agent kills"] >= least
    assert verdict.counts["redis kills"] >= least / 2.5
    # Spared twice, but not many.
    assert len(verdict.missed) <= verdict.counts["lives"] // 25, verdict.missed


def everywhere(plan: Plan, at: Sequence[Point]) -> list[Plan]:
    return [each for victim in VICTIMS for each in blows(plan, at, victim)]


def of_manifests(found: Sequence[Point]) -> list[Point]:
    """What a pod that is applied adds to one that comes from a file."""
    return [point for point in found if "manifests." in point.type]


def of_new_kinds(found: Sequence[Point], known: Sequence[Point]) -> list[Point]:
    """Those of kinds that a plainer life has not."""
    strata = {point.stratum for point in known}
    return [point for point in found if point.stratum not in strata]


@pytest.mark.timeout(3600)
def test_a_blow_at_each_kind_of_point_changes_nothing(docker_engine: PrivateDocker) -> None:
    with matrix(docker_engine) as done:
        twin = done.twin(FILE)
        at = points.halved(points.sample(twin.points))
        done.run(twin, [*blows(FILE, at, "agent"), *blows(FILE, at[::2], "redis")])
        applied = done.twin(APPLY)
        at = points.sample(of_manifests(applied.points))
        done.run(applied, everywhere(APPLY, at))
        whole = done.twin(WHOLE)
        new = of_new_kinds(whole.points, [*twin.points, *applied.points])
        at = list(dict.fromkeys([*points.halved(points.sample(new)), *points.sample_of_hooks(new)]))
        assert len(whole.lived.story.hooks) == 5, whole.lived.story.hooks
        done.run(whole, blows(WHOLE, at, "agent"))
        judged(done, least=60)


def of_the_restart(twin: Twin) -> list[Point]:
    """From the first stop to the next start: one of each kind. The successor's creation may share its step with a rarer
    event, and be one all the same.
    """
    names = twin.lived.names
    stop = next(number for number, name in enumerate(names) if "pod.ContainerStopRequested" in name)
    up = next(number for number, name in enumerate(names) if number > stop and "pod.ContainerStarted" in name)
    passed = points.all_points(names, told_by="pod.ContainerCreated")[stop : up + 2]
    return points.sample(point for point in passed if point in twin.common)


@pytest.mark.timeout(3600)
def test_nothing_is_left_of_a_sandbox_that_fails_with_what_was_created_for_it(docker_engine: PrivateDocker) -> None:
    with matrix(docker_engine) as done:
        twin = done.twin(TAKEN)
        at = points.of_creations(twin.lived.names)
        assert {point.type for point in at} >= SIDE_BY_SIDE, at
        done.run(twin, everywhere(TAKEN, at))
        judged(done, least=30)


@pytest.mark.timeout(3600)
def test_a_successor_that_is_created_while_its_predecessor_is_stopped_runs_once(docker_engine: PrivateDocker) -> None:
    with matrix(docker_engine) as done:
        twin = done.twin(BROKEN)
        at = of_the_restart(twin)
        assert "pod.ContainerCreated" in {point.type for point in at}, at
        done.run(twin, everywhere(BROKEN, at))
        judged(done, least=20)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_blow_at_any_point_of_a_whole_life_changes_nothing(docker_engine: PrivateDocker) -> None:
    with matrix(docker_engine) as done:
        whole = done.twin(WHOLE)
        done.run(whole, everywhere(WHOLE, whole.points))
        long = done.twin(WHOLE_AND_LONG)
        # Lives that mostly wait: twice as many go side by side.
        late = [one for one in long.points if one not in whole.points]
        done.run(
            long,
            [*blows(WHOLE_AND_LONG, late, "agent"), *blows(WHOLE_AND_LONG, points.sample(late), "redis")],
            2 * AT_ONCE,
        )
        judged(done, least=400)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_blow_at_any_point_changes_nothing(docker_engine: PrivateDocker) -> None:
    with matrix(docker_engine) as done:
        twin = done.twin(FILE)
        done.run(twin, everywhere(FILE, twin.points))
        applied = done.twin(APPLY)
        done.run(applied, everywhere(APPLY, of_manifests(applied.points)))
        looping = done.twin(LOOPING)
        # Lives that mostly wait: twice as many go side by side.
        done.run(looping, everywhere(LOOPING, [one for one in looping.points if one not in twin.points]), 2 * AT_ONCE)
        judged(done, least=120)
