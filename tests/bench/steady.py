"""A quiet node of 250 pods with two probes each: the CPU time of agent and Redis, and the cost of each page.

Input: options. Output: figures. Next: `__main__`.

Probes have the kubelet's usual period of 10 s. CPU times are those of whole processes, including probes, sampling,
relists and the lease. A page's figures are those of its most expensive request, which is the first after a sample. The
first request ever made, which may fold the log, is shown in the note.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.bench.figures import Figure
from tests.bench.kernel.idle import per_minute
from tests.bench.pods import serving
from tests.bench.pods.agent import Agent, running

PODS, PORT = 250, 10255
PERIOD_SECONDS = 10
WINDOW_SECONDS, SETTLE_SECONDS = 120.0, 20.0
"""Seconds of measurement, and seconds before it. The window covers twelve rounds of everything that happens every 10 s,
and at least six samples.
"""
CORE_PER_CENT_GOAL = 4.0
REQUESTS = 12
_PAUSE_SECONDS = 1.1
"""Pause between requests for a page, which makes them fall both before and after samples."""
_SECONDS_PER_MINUTE = 60
_REQUEST_TIMEOUT_SECONDS = 30.0

PAGES = ("/pods", "/runningpods", "/healthz", "/metrics", "/metrics/probes", "/metrics/resource", "/stats/summary")
GOALS = {"/metrics/cadvisor": (0.25, 0.5)}
"""Goals of the pages to which `_USUAL_GOALS` do not apply: CPU seconds and seconds of a request."""
_USUAL_GOALS = (0.05, 0.1)


class Cost(NamedTuple):
    """The cost of one request: CPU seconds of the agent, and seconds until the last byte of the response."""

    cpu: float
    wall: float


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure the share of a core that the quiet node uses, then the cost of each page."""
    os.environ |= serving.ROOMY
    pods = 12 if options.quick else PODS
    with running(in_network=True, port=PORT) as agent:
        serving.start(agent, pods, _probes)
        return _measured(agent, pods, quick=options.quick)


def _probes(number: int) -> dict[str, Any]:
    """Return the two probes of a container, one by HTTP and one by TCP, given the pod's number."""
    live, ready = serving.handler(number), serving.handler(number + 1)
    period = {"periodSeconds": PERIOD_SECONDS}
    return {"livenessProbe": {**live, **period}, "readinessProbe": {**ready, **period}}


def _measured(agent: Agent, pods: int, *, quick: bool) -> list[Figure]:
    time.sleep(5 if quick else SETTLE_SECONDS)
    redis = agent.redis()[0]
    minute = per_minute([agent.pid, redis], 10 if quick else WINDOW_SECONDS)
    ours, server = (100 * seconds / _SECONDS_PER_MINUTE for seconds in minute)
    core = Figure(
        name=f"agent and Redis, {pods} pods with two probes every {PERIOD_SECONDS} s",
        ours=ours + server,
        unit="% of a core",
        goal=CORE_PER_CENT_GOAL,
        note=f"agent {ours:.2f}, Redis {server:.2f}; load {os.getloadavg()[0]:.0f}",
    )
    requests = 3 if quick else REQUESTS
    return [core, *(one for page in (*PAGES, *GOALS) for one in _page(agent, page, pods, requests))]


def _page(agent: Agent, path: str, pods: int, requests: int) -> list[Figure]:
    first, size = _request(agent, path)
    costs = []
    for _ in range(requests):
        cost, size = _request(agent, path)
        costs.append(cost)
        time.sleep(_PAUSE_SECONDS)
    cpu, wall = max(one.cpu for one in costs), max(one.wall for one in costs)
    goals = GOALS.get(path, _USUAL_GOALS)
    shown = f"in the median {_median(costs)}; the first {_shown(first)}"
    note = f"{size:,} bytes, the most expensive of {requests} requests; {shown}"
    return [
        Figure(name=f"{path}, {pods} pods", ours=cpu * 1000, unit="CPU ms", goal=goals[0] * 1000, note=note),
        Figure(name=f"{path}, {pods} pods", ours=wall * 1000, unit="ms", goal=goals[1] * 1000),
    ]


def _median(costs: list[Cost]) -> str:
    middle = len(costs) // 2
    return _shown(Cost(sorted(one.cpu for one in costs)[middle], sorted(one.wall for one in costs)[middle]))


def _shown(cost: Cost) -> str:
    return f"{cost.cpu * 1000:.1f} CPU ms, {cost.wall * 1000:.1f} ms"


def _request(agent: Agent, path: str) -> tuple[Cost, int]:
    clock = _cpu_clock(agent.pid)
    before, began = time.clock_gettime(clock), time.perf_counter()
    answer = agent.docker.namespace.http(agent.port, path, timeout=_REQUEST_TIMEOUT_SECONDS)
    wall, cpu = time.perf_counter() - began, time.clock_gettime(clock) - before
    assert answer.status == 200, f"{path}: found status {answer.status}, expected 200: {answer.body[:200]!r}"
    return Cost(cpu, wall), len(answer.body)


def _cpu_clock(pid: int) -> int:
    """Return the id of a process's CPU-time clock, since /proc only counts in ticks of 10 ms. Source:
    clock_getcpuclockid(3).
    """
    return (~pid << 3) | 2
