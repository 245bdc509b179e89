"""Probers and pleg with a log between them: in any order of reading, and with restarts of any of them, no kill is lost
and none is carried out twice.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from chronolet.kernel.decider import Due
from chronolet.pleg.decider import decider
from chronolet.pleg.probe_kills.holding_back import Policy
from chronolet.prober.decider import DECIDER
from chronolet_schemas import pleg, prober
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Probe
from tests.deciders.given import Scene, given
from tests.deciders.prober import probing

PODS = ("a", "b", "c", "d")
FOR_PLEG = prober.ProbeUnjudged | prober.KillAsked | prober.KillWithdrawn
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("short", "short", "short", "failure", "success", "next", "pleg", "prober", "kill9", "wait")),
        st.sampled_from(PODS),
    ),
    max_size=60,
)


class World:
    """One log, one pleg, and one prober for each pod, each with its own cursor."""

    def __init__(self) -> None:
        self.now = 10_000
        self.pleg = given(decider("n", Policy(kills_per_minute=10, hold_milliseconds=20_000)))
        self.probers = {pod: given(DECIDER) for pod in PODS}
        self.attempts = Counter[str]()
        self.for_pleg: list[Event] = []
        self.for_probers: dict[str, list[pleg.ProbeKillReleased]] = {pod: [] for pod in PODS}
        for pod in PODS:
            self.run(pod)

    def run(self, pod: str) -> None:
        """Start the next container of a pod."""
        number = self.attempts[pod]
        self.attempts[pod] += 1
        request = probing.wanted(
            pod=f"default/{pod}",
            id=f"{pod}{number}",
            attempt=number,
            started_at=self.now,
            definition=Probe(failure_threshold=1),
        )
        self.record(self.probers[pod].when(request, at=self.now))

    def record(self, scene: Scene) -> None:
        """Append the decided events to the queues of their subscribers."""
        for event in scene.events:
            if isinstance(event, FOR_PLEG):
                self.for_pleg.append(event)
            elif isinstance(event, pleg.ProbeKillReleased):
                self.for_probers[event.pod.partition("/")[2]].append(event)

    def step(self, what: str, pod: str) -> None:
        self.now += 100
        match what:
            case "short" | "failure" | "success":
                self.probe(pod, what)
            case "next":
                self.run(pod)
            case "pleg":
                self.pleg_reads()
            case "prober":
                self.prober_reads(pod)
            case "kill9":
                self.pleg = given(self.pleg.decider, *self.pleg.history)
                self.probers[pod] = given(DECIDER, *self.probers[pod].history)
            case _:
                self.wait(15_000)

    def probe(self, pod: str, what: str) -> None:
        scene = self.probers[pod]
        if scene.effects:
            result: prober.Outcome = "success" if what == "success" else "failure"
            self.record(probing.outcome(scene, result, at=self.now, short_of=("cpu",) if what == "short" else ()))

    def pleg_reads(self) -> None:
        if self.for_pleg:
            self.record(self.pleg.when(self.for_pleg.pop(0), at=self.now))

    def prober_reads(self, pod: str) -> None:
        if self.for_probers[pod]:
            self.record(self.probers[pod].when(self.for_probers[pod].pop(0), at=self.now))

    def wait(self, milliseconds: int) -> None:
        """Let time pass; pleg's timer fires when it is due."""
        until = self.now + milliseconds
        while (at := self.pleg.decider.due(self.pleg.state)) is not None and at <= until:
            self.now = max(self.now, at)
            self.record(self.pleg.when(Due(at=at), at=self.now))
        self.now = until

    def settle(self) -> None:
        """Let pleg and all probers read the whole log, and let three hours pass."""
        for _ in range(3):
            while self.for_pleg:
                self.pleg_reads()
            self.wait(3_600_000)
            for pod in PODS:
                while self.for_probers[pod]:
                    self.prober_reads(pod)


@settings(max_examples=150, deadline=None)
@drawn(steps=STEPS)
def test_each_kill_is_carried_out_once_or_withdrawn(steps: list[tuple[str, str]]) -> None:
    world = World()
    for what, pod in steps:
        world.step(what, pod)
    world.settle()
    assert not world.pleg.state.probe_kills.held
    assert not world.pleg.state.probe_kills.since
    for scene in world.probers.values():
        history = scene.history
        assert not scene.state.asked, "a kill was lost"
        failed = Counter(one.id for one in history if isinstance(one, prober.ResultChanged) and one.result == "failure")
        assert set(failed.values()) <= {1}, "a kill was carried out twice"
        requested = sum(isinstance(one, prober.KillAsked) for one in history)
        withdrawn = sum(isinstance(one, prober.KillWithdrawn) for one in history)
        assert withdrawn <= requested <= withdrawn + sum(failed.values())
    held = [one for one in world.pleg.history if isinstance(one, pleg.ProbeKillHeld)]
    after = [
        one
        for one in world.pleg.history
        if isinstance(one, pleg.ProbeKillDropped) or (isinstance(one, pleg.ProbeKillReleased) and one.held_milliseconds)
    ]
    assert len(after) == len(held)
