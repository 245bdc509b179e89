"""The decider of kube_events alone: deciding and folding, in batches of a hundred as in a flood, and one by one.

Input: options. Output: events per second.
"""

from __future__ import annotations

import statistics
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
"""Functions by name of the case; each returns the pod name and the message of event N."""


def figures(quick: bool) -> list[Figure]:
    """Measure each case in several rounds; return the medians."""
    rounds = 1 if quick else 5
    processor: dict[str, list[float]] = {name: [] for name in CASES}

    def rate(name: str, batch_size: int) -> float:
        wall, own = _rate(CASES[name], batch_size)
        if batch_size > 1:
            processor[name].append(own)
        return wall

    together = interleaved({name: lambda name=name: rate(name, 100) for name in CASES}, rounds)  # type: ignore[misc]
    alone = interleaved({name: lambda name=name: rate(name, 1) for name in CASES}, rounds)  # type: ignore[misc]
    first = next(iter(CASES))
    return [
        Figure(
            name=f"correlated, {name}",
            ours=together[name],
            unit="/s",
            goal=GOAL if name == first else None,
            bound="at least",
            note=f"by the processor's own time {statistics.median(processor[name]):,.0f}/s;"
            f" one by one: {alone[name]:,.0f}/s",
        )
        for name in CASES
    ]


def _rate(case: Callable[[int], tuple[str, str]], batch_size: int) -> tuple[float, float]:
    """Return the events decided and folded per second, by wall-clock time and by CPU time."""
    events = [(Position(1_700_000_000_000 + number, number + 1), _recorded(*case(number))) for number in range(EVENTS)]
    batches = [signals.batch(events[begin : begin + batch_size]) for begin in range(0, EVENTS, batch_size)]
    one = decider(Policy(sinks={"redis": Rules(backlog=10_000, batch=100)}))
    state = one.initial
    began, spent = time.perf_counter(), time.process_time()
    for message in batches:
        for event in one.decide(state, message, 0):
            state = one.evolve(state, event) or one.initial
    seconds, spent = time.perf_counter() - began, time.process_time() - spent
    assert state.heard == EVENTS
    return EVENTS / seconds, EVENTS / spent


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
