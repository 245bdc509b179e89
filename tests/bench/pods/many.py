"""As many pods as a kubelet takes by default: their start, their steady state, the agent's restart beside them.

Input: an agent, bare calls. Output: figures; the goals are those of fewer pods. Next: `pods`.
"""

from __future__ import annotations

from tests.bench.bare_docker import Bare
from tests.bench.figures import Figure
from tests.bench.pods import parts
from tests.bench.pods.agent import Agent


def figures(agent: Agent, bare: Bare, pods: int, *, quick: bool) -> list[Figure]:
    """Each by a test of the harness, which starts and removes its own pods."""
    reps = 1 if quick else 3
    return [
        *parts.batch(agent, bare, (pods,)),
        *parts.steady(agent, (pods,), quick=quick),
        *parts.comeback(agent, pods, reps),
    ]
