"""The kubelet's default number of pods: their start, their steady state, and the agent's restart.

Input: an agent, bare calls. Output: figures; the batch has the same goals as with fewer pods. Next: `pods`.
"""

from __future__ import annotations

from tests.bench.bare_docker import Bare
from tests.bench.figures import Figure
from tests.bench.pods import parts
from tests.bench.pods.agent import Agent


def figures(agent: Agent, bare: Bare, pods: int, *, quick: bool) -> list[Figure]:
    """Run tests of the harness, each of which starts and removes its own pods; return their figures."""
    reps = 1 if quick else 3
    return [
        *parts.batch(agent, bare, (pods,)),
        *parts.steady(agent, (pods,), quick=quick),
        *parts.comeback(agent, pods, reps),
    ]
