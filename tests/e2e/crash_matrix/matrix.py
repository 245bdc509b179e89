"""Many concurrent runs on one engine, each with a kill at a different crash point, and their results.

Input: plans. Output: a `Verdict` with counts and all differences from the reference run. Next: the tests.
"""

from __future__ import annotations

import queue
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from tests.e2e.crash_matrix.hook_server import HookServer
from tests.e2e.crash_matrix.pod_run import Plan, RunResult, SharedSetup, run_pod
from tests.e2e.crash_matrix.run_record import difference
from tests.e2e.docker_events import DockerEvents
from tests.e2e.fault_injection import points
from tests.e2e.fault_injection.agent_farm import AgentFarm
from tests.e2e.fault_injection.faults import KillTarget
from tests.e2e.fault_injection.points import Point
from tests.support.docker.engine import PrivateDocker

CONCURRENT_RUNS = 4
KILL_TARGETS: tuple[KillTarget, ...] = ("agent", "redis")
FIRST_PORT = 9000


@dataclass
class Verdict:
    """The results of all runs."""

    counts: Counter[str] = field(default_factory=Counter)
    strata: set[str] = field(default_factory=set)
    not_reached: list[str] = field(default_factory=list)
    """Crash points that their run did not reach, so nothing was killed."""
    wrong: list[str] = field(default_factory=list)

    def print(self) -> None:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        not_reached = self.not_reached or "none"
        print(f"crash matrix: {counts}")  # noqa: T201 - the results
        print(f"strata: {len(self.strata)}; not reached: {not_reached}; wrong: {len(self.wrong)}")  # noqa: T201 - the results


@dataclass(frozen=True)
class ReferenceRun:
    """A run without a kill, and its crash points."""

    result: RunResult
    points: Sequence[Point]
    """One point per announcement, identified by its rarest event; only points in `common`."""
    common: frozenset[Point]
    """The points that both recorded runs passed; a step counts as one point for each of its events."""


class Matrix:
    """Runs plans with a shared setup, and collects their results in `verdict`."""

    def __init__(self, shared: SharedSetup) -> None:
        self._shared = shared
        self._ports: queue.Queue[int] = queue.Queue()
        for port in range(FIRST_PORT, FIRST_PORT + 2 * CONCURRENT_RUNS):
            self._ports.put(port)
        self._nodes = iter(range(1_000_000))
        self.verdict = Verdict()

    def reference_run(self, plan: Plan) -> ReferenceRun:
        """Run the plan twice without a kill. The records must be equal, and only points that both runs passed are crash
        points.
        """
        one, other = (self._run(plan, record=True) for _ in range(2))
        if found := difference(one.record, other.record):
            raise AssertionError(f"two runs without a kill differ: {found}")
        common = frozenset(filter(_is_of_pods, points.reached_by_all([one.names, other.names])))
        passed = [point for point in dict.fromkeys(points.all_points(one.names)) if point in common]
        assert len(passed) > 80, passed
        return ReferenceRun(one, passed, common)

    def run(self, reference: ReferenceRun, plans: Sequence[Plan], concurrent: int = CONCURRENT_RUNS) -> None:
        """Run all plans, and compare each with the reference run. A run may not reach its crash point if concurrent
        work happens in a different order: it is repeated once.
        """
        began = time.monotonic()
        not_reached = self._run_all(reference, plans, concurrent)
        self.verdict.not_reached += map(_description, self._run_all(reference, not_reached, concurrent))
        self.verdict.counts["seconds"] += round(time.monotonic() - began)

    def _run_all(self, reference: ReferenceRun, plans: Sequence[Plan], concurrent: int) -> list[Plan]:
        """Run the plans; return those that completed without a kill."""
        with ThreadPoolExecutor(concurrent) as pool:
            runs = zip(plans, pool.map(self._attempt, plans), strict=True)
            return [plan for plan, result in runs if not self._compare(reference, plan, result)]

    def _attempt(self, plan: Plan) -> RunResult | str:
        try:
            return self._run(plan)
        except Exception as error:  # noqa: BLE001 - the other runs go on; the verdict reports it
            return "".join(traceback.format_exception(error))

    def _run(self, plan: Plan, *, record: bool = False) -> RunResult:
        port = self._ports.get()
        try:
            return run_pod(self._shared, plan, f"node-{next(self._nodes)}", port, record=record)
        finally:
            self._ports.put(port)

    def _compare(self, reference: ReferenceRun, plan: Plan, result: RunResult | str) -> bool:
        """Compare a run with the reference run. Returns False only if the run completed without a kill."""
        verdict, what = self.verdict, _description(plan)
        verdict.counts["runs"] += 1
        if isinstance(result, str):
            verdict.wrong.append(f"{what}: {result}")
            return True
        assert plan.point is not None
        if result.killed:
            verdict.counts[f"{plan.target} kills"] += 1
            verdict.counts[f"at {plan.point.place.partition(' ')[0]}"] += 1
            verdict.strata.add(plan.point.stratum)
        exits = [-9] if result.killed and plan.target == "agent" else []
        if result.exits != exits:
            verdict.wrong.append(f"{what}: agents ended by themselves: {result.exits}, expected {exits}")
        if different := difference(reference.result.record, result.record):
            verdict.wrong.append(f"{what}:\n{different}")
        return result.killed


def _description(plan: Plan) -> str:
    details = f"{plan.pod}, {plan.source}, {plan.kills} kills{', port taken' if plan.port_taken else ''}"
    return f"{plan.target} killed at {plan.point} ({details})"


def _is_of_pods(point: Point) -> bool:
    """Return whether the point belongs to a pod. The collectors run at any time, and have separate kill tests."""
    return not any(f" {kind}" in point.place for kind in ("container_gc", "image_gc"))


def plans_at(plan: Plan, at: Sequence[Point], target: KillTarget) -> list[Plan]:
    """Return the plan once for each of these points, with a kill of `target` at the point."""
    return [msgspec.structs.replace(plan, point=point, target=target) for point in at]


@contextmanager
def matrix(engine: PrivateDocker) -> Iterator[Matrix]:
    """Yield a matrix that runs on this engine; print its verdict at the end."""
    farm, docker_events, hook_server = AgentFarm(), DockerEvents(engine), HookServer()
    runner = Matrix(SharedSetup(farm, engine, docker_events, hook_server))
    try:
        yield runner
    finally:
        runner.verdict.print()
        hook_server.close()
        docker_events.close()
        farm.end()
