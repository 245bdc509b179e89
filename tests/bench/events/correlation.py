"""The decider of kube_events alone: deciding and folding, in turns of a hundred as a flood comes, and one by one.

Comes in: nothing. Goes out: events a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from chronolet.kube_events import signals
from chronolet.kube_events.decider import decider
from chronolet.kube_events.policy import Policy, Rules
from chronolet_schemas.envelope import Position
from chronolet_schemas.kube_events import Recorded
from tests.bench.figures import Figure, interleaved

EVENTS = 100_000
GOAL = 50_000.0

CASES: dict[str, Callable[[int], tuple[str, str]]] = {
    "300 pods, 7 messages each": lambda number: (f"web-{number % 300}", f"message {number % 7}"),
    "one pod, one message": lambda _: ("web", "message"),
    "as many pods as events": lambda number: (f"web-{number}", "message"),
}
"""The name and the message of event number so."""


def figures(quick: bool) -> list[Figure]:
    """Medians of some rounds."""
    rounds = 1 if quick else 5
    together = interleaved({name: lambda case=case: _rate(case, 100) for name, case in CASES.items()}, rounds)  # type: ignore[misc]
    alone = interleaved({name: lambda case=case: _rate(case, 1) for name, case in CASES.items()}, rounds)  # type: ignore[misc]
    first = next(iter(CASES))
    return [
        Figure(
            name=f"correlated, {name}",
            ours=together[name],
            unit="/s",
            goal=GOAL if name == first else None,
            bound="at least",
            note=f"one by one: {alone[name]:,.0f}/s",
        )
        for name in CASES
    ]


def _rate(case: Callable[[int], tuple[str, str]], at_once: int) -> float:
    """Events a second, decided and folded."""
    events = [(Position(1_700_000_000_000 + number, number + 1), _recorded(*case(number))) for number in range(EVENTS)]
    told = [signals.heard(events[begin : begin + at_once]) for begin in range(0, EVENTS, at_once)]
    one = decider(Policy(sinks={"redis": Rules(backlog=10_000, batch=100)}))
    state = one.initial
    began = time.perf_counter()
    for message in told:
        for event in one.decide(state, message, 0):
            state = one.evolve(state, event) or one.initial
    seconds = time.perf_counter() - began
    assert state.heard == EVENTS
    return EVENTS / seconds


def _recorded(name: str, message: str) -> Recorded:
    return Recorded(
        object_kind="Pod",
        namespace="shop",
        name=name,
        uid="2d7f4e1c-4b1c-4d7e-9a53-0242ac110002",
        field_path="spec.containers{app}",
        severity="Warning",
        reason="BackOff",
        message=message,
    )
