"""Row c: the time from a container's break to the next container's start. The first failure of a liveness probe, which
runs each second, stops the container.

Input: an agent, bare calls, the number of breaks of each kind. Output: figures by kind. Next: `pods`.

The harness breaks containers at random times, so on average the next probe begins half a second after the break. The
time from the failing probe's start is read from the agent's log (`steps`). The bare client stops a container with the
same grace period, and creates and starts the next one.
"""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

from chronolet.kernel.storage.redis.store import RedisStore
from tests.bench.agent_bench import pct
from tests.bench.bare_docker import Bare
from tests.bench.figures import Figure
from tests.bench.pods import steps
from tests.bench.pods.agent import NODE, Agent

KINDS = ("exec", "http")
TURN = 10
"""Number of containers probed concurrently: forty would load the machine."""
GRACE_SECONDS = 5
"""The grace period of the harness's pods, in seconds."""


class Goals(NamedTuple):
    """Goals for the median and the 99th percentile, in seconds."""

    median: float
    p99: float


FROM_PROBE = {"exec": Goals(0.20, 0.30), "http": Goals(0.15, 0.25)}
FROM_BREAK = Goals(0.65, 1.15)


class Broken(NamedTuple):
    """Results for one kind of probe: seconds from the break, steps of each restart, number of healthy containers
    restarted.
    """

    from_break: list[float]
    steps: list[steps.Steps]
    unexpected: int


def figures(agent: Agent, bare: Bare, breaks: int) -> list[Figure]:
    """Break containers of both kinds alternately; measure the bare calls before and after; return the figures."""
    bares = _bare(bare, breaks)
    found = {kind: Broken([], [], 0) for kind in KINDS}
    for left in range(breaks, 0, -TURN):
        for kind in KINDS:
            found[kind] = _joined(found[kind], _broken(agent, kind, min(left, TURN)))
    bares += _bare(bare, breaks)
    return [figure for kind, one in found.items() for figure in figures_of(kind, one, bares, breaks)]


def _bare(bare: Bare, breaks: int) -> list[float]:
    found = bare.replacements(breaks, GRACE_SECONDS)
    bare.remove()
    return found


def _broken(agent: Agent, kind: str, breaks: int) -> Broken:
    store = RedisStore(agent.url, NODE)
    try:
        before = store.last()
        found: dict[str, Any] = agent.measure("c", "--reps", str(breaks), "--c-kinds", kind)[f"c_{kind}"]
        spent = list(steps.restarts(store, before, f"an-lv{kind}-"))
    finally:
        store.close()
    return Broken(found["break_to_new_start"].get("all", []), spent, found["unexpected_restarts"])


def _joined(one: Broken, other: Broken) -> Broken:
    return Broken(one.from_break + other.from_break, one.steps + other.steps, one.unexpected + other.unexpected)


def figures_of(kind: str, found: Broken, bares: list[float], breaks: int) -> list[Figure]:
    """Return the figures of a kind. Raises AssertionError if no container was restarted because of its probe.
    If the machine is short of a resource, the agent holds back stops, and the harness does not wait for these.
    """
    assert found.from_break, f"no container was restarted after a break: {kind}"
    assert found.steps, f"the log has no restart for a failed probe: {kind}"
    spent = [sum(one) / 1000 for one in found.steps]
    medians = ", ".join(f"{name} {value}" for name, value in steps.medians(found.steps)._asdict().items())
    counted = f"{len(found.from_break)} of {breaks} breaks ended within a minute, {found.unexpected} other restarts"
    goals = FROM_PROBE[kind]
    return [
        Figure(
            name=f"c. {kind}, failing probe to new start, median",
            **_next_to_bare(spent, bares, 50, goals.median),
            note=f"{len(spent)} restarts; medians in ms, by the log and Docker's clock: {medians}",
        ),
        Figure(name=f"c. {kind}, failing probe to new start, p99", **_next_to_bare(spent, bares, 99, goals.p99)),
        Figure(
            name=f"c. {kind}, break to new start, median",
            ours=statistics.median(found.from_break),
            unit="s",
            goal=FROM_BREAK.median,
            note=counted,
        ),
        Figure(
            name=f"c. {kind}, break to new start, p99", ours=pct(found.from_break, 99), unit="s", goal=FROM_BREAK.p99
        ),
    ]


def _next_to_bare(spent: list[float], bares: list[float], percent: int, goal: float) -> dict[str, Any]:
    """Return a figure's fields: a percentile of our times and of bare Docker's; the goal applies only to ours."""
    return {
        "ours": pct(spent, percent),
        "unit": "s",
        "reference": pct(bares, percent),
        "reference_name": "s by bare calls",
        "goal": goal,
        "absolute": True,
    }
