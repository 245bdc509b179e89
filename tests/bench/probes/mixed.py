"""HTTP, TCP and exec probes together: 110 pods with a liveness and a readiness probe each second, 220 probes per
second.

Input: an agent, the number of pods. Output: figures. Next: `probes`.

One of a pod's probes uses HTTP, the other TCP; the readiness probe of every eleventh pod is a command. A command, which
the engine runs, costs a hundred times as much as another probe: more commands would fully occupy two processors.
"""

from __future__ import annotations

import time
from typing import Any

from tests.bench.figures import Figure
from tests.bench.pods import serving
from tests.bench.pods.agent import Agent
from tests.bench.probes import rate

PROBES_OF_EACH = 2
EXEC_EVERY = 11
CPU_GOAL = 6.0
EACH_SECOND = {"periodSeconds": 1, "failureThreshold": 3}


def figures(agent: Agent, pods: int, *, quick: bool) -> list[Figure]:
    """Measure how many probes run per second, and their CPU cost."""
    with serving.served(agent, pods, probes):
        time.sleep(3 if quick else rate.SETTLE_SECONDS)
        window = rate.measured(agent, 8 if quick else rate.WINDOW_SECONDS)
    wanted = pods * PROBES_OF_EACH
    commands = len(range(0, pods, EXEC_EVERY))
    seen = Figure(
        name="probes of all kinds a second",
        ours=window.rate,
        unit="a second",
        goal=0.99 * wanted,
        bound="at least",
        note=f"{wanted} wanted, {commands} of them commands, the others half by HTTP and half by TCP;"
        f" {window.failed} of {len(window.results)} failed",
    )
    return [seen, window.cpu("CPU of agent and Redis with them", None if quick else CPU_GOAL)]


def probes(number: int) -> dict[str, Any]:
    """Return the probes of a pod's container, given the pod's number."""
    command = {"exec": {"command": ["test", "-f", "/tmp/www/ok"]}}
    ready = command if number % EXEC_EVERY == 0 else serving.handler(number + 1)
    return {"livenessProbe": {**serving.handler(number), **EACH_SECOND}, "readinessProbe": {**ready, **EACH_SECOND}}
