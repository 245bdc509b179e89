"""Many lives, each with a blow at another point, side by side on one engine; and what came of them.

Input: plans. Output: a `Verdict` with counts and with everything that was not as the twin's. Next: the tests.
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

from tests.e2e.crash_matrix.hook_server import Listener
from tests.e2e.crash_matrix.pod_run import Lived, Plan, Stage, live
from tests.e2e.crash_matrix.run_record import difference
from tests.e2e.fault_injection import points
from tests.e2e.fault_injection.agent_farm import Farm
from tests.e2e.fault_injection.faults import Victim
from tests.e2e.fault_injection.points import Point
from tests.e2e.witness import Witness
from tests.support.docker import PrivateDocker

AT_ONCE = 4
VICTIMS: tuple[Victim, ...] = ("agent", "redis")
FIRST_PORT = 9000


@dataclass
class Verdict:
    """Of all lives of a run."""

    counts: Counter[str] = field(default_factory=Counter)
    strata: set[str] = field(default_factory=set)
    missed: list[str] = field(default_factory=list)
    """Points that a life did not reach: nothing was killed in it."""
    wrong: list[str] = field(default_factory=list)

    def tell(self) -> None:
        """Print it."""
        print("crash matrix: " + ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items())))  # noqa: T201 - asked for
        print(f"kinds of points: {len(self.strata)}; not reached: {self.missed or 'none'}; wrong: {len(self.wrong)}")  # noqa: T201 - asked for


@dataclass(frozen=True)
class Twin:
    """A life in which nobody was killed, and the points of it."""

    lived: Lived
    points: Sequence[Point]
    """One for each announcement."""
    common: frozenset[Point]
    """By whatever event: both lives have passed them."""


class Matrix:
    """The stage, and the lives on it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._ports: queue.Queue[int] = queue.Queue()
        for port in range(FIRST_PORT, FIRST_PORT + 2 * AT_ONCE):
            self._ports.put(port)
        self._nodes = iter(range(1_000_000))
        self.verdict = Verdict()

    def twin(self, plan: Plan) -> Twin:
        """Lived twice: the two must be the same, and only points that both have passed are worth a blow."""
        one, other = (self._live(plan, record=True) for _ in range(2))
        if found := difference(one.story, other.story):
            raise AssertionError(f"two lives in which nobody was killed differ: {found}")
        common = frozenset(filter(_is_of_pods, points.reached_by_all([one.names, other.names])))
        passed = [point for point in dict.fromkeys(points.all_points(one.names)) if point in common]
        assert len(passed) > 80, passed
        return Twin(one, passed, common)

    def run(self, twin: Twin, plans: Sequence[Plan], at_once: int = AT_ONCE) -> None:
        """Live all of them, and hold each against the twin. The order of things that run side by side may spare a life
        its blow: then there is one more such life.
        """
        began = time.monotonic()
        spared = self._lives(twin, plans, at_once)
        self.verdict.missed += map(_named, self._lives(twin, spared, at_once))
        self.verdict.counts["seconds"] += round(time.monotonic() - began)

    def _lives(self, twin: Twin, plans: Sequence[Plan], at_once: int) -> list[Plan]:
        """Those in which nobody was struck."""
        with ThreadPoolExecutor(at_once) as pool:
            lives = zip(plans, pool.map(self._attempt, plans), strict=True)
            return [plan for plan, lived in lives if not self._judge(twin, plan, lived)]

    def _attempt(self, plan: Plan) -> Lived | str:
        try:
            return self._live(plan)
        except Exception as error:  # noqa: BLE001 - the other lives go on; the verdict has it
            return "".join(traceback.format_exception(error))

    def _live(self, plan: Plan, *, record: bool = False) -> Lived:
        port = self._ports.get()
        try:
            return live(self._stage, plan, f"node-{next(self._nodes)}", port, record=record)
        finally:
            self._ports.put(port)

    def _judge(self, twin: Twin, plan: Plan, lived: Lived | str) -> bool:
        """False if nobody was struck."""
        verdict, what = self.verdict, _named(plan)
        verdict.counts["lives"] += 1
        if isinstance(lived, str):
            verdict.wrong.append(f"{what}: {lived}")
            return True
        assert plan.point is not None
        if lived.struck:
            verdict.counts[f"{plan.victim} kills"] += 1
            verdict.counts[f"at {plan.point.place.partition(' ')[0]}"] += 1
            verdict.strata.add(plan.point.stratum)
        deaths = [-9] if lived.struck and plan.victim == "agent" else []
        if lived.deaths != deaths:
            verdict.wrong.append(f"{what}: agents died by themselves: {lived.deaths}, expected {deaths}")
        if different := difference(twin.lived.story, lived.story):
            verdict.wrong.append(f"{what}:\n{different}")
        return lived.struck


def _named(plan: Plan) -> str:
    life = f"{plan.pod}, {plan.source}, {plan.kills} kills{', port taken' if plan.taken else ''}"
    return f"{plan.victim} killed at {plan.point} ({life})"


def _is_of_pods(point: Point) -> bool:
    """Whether it has to do with a pod's life: the collectors, which have blows of their own, happen to be there."""
    return not any(f" {kind}" in point.place for kind in ("container_gc", "image_gc"))


def blows(plan: Plan, at: Sequence[Point], victim: Victim) -> list[Plan]:
    """The plan with a blow at each of these points."""
    return [msgspec.structs.replace(plan, point=point, victim=victim) for point in at]


@contextmanager
def matrix(engine: PrivateDocker) -> Iterator[Matrix]:
    """A matrix on this engine."""
    farm, witness, listener = Farm(), Witness(engine), Listener()
    done = Matrix(Stage(farm, engine, witness, listener))
    try:
        yield done
    finally:
        done.verdict.tell()
        listener.close()
        witness.close()
        farm.end()
