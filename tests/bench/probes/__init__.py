"""Probes: cost and punctuality of 330 HTTP probes per second, and the agent benchmark's rows with probes.

Input: options. Output: figures next to their goals. The agent runs in the network of its engine, as on any host, so
that it can reach its pods. Next: `rate`, `mixed`, `rows`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from tests.bench.figures import Figure
from tests.bench.pods import attempted
from tests.bench.pods.agent import Agent, running
from tests.bench.probes import mixed, rate, rows

PARTS: dict[str, Callable[[Agent, bool], list[Figure]]] = {
    "rate": lambda agent, quick: rate.figures(agent, 12 if quick else 110, quick=quick),
    "mixed": lambda agent, quick: mixed.figures(agent, 12 if quick else 110, quick=quick),
    "d": lambda agent, quick: rows.steady(agent, quick=quick),
    "overload": lambda agent, quick: rows.overload(agent, 12 if quick else 60, quick=quick),
}


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure the selected parts, by default all, in order; return their figures."""
    os.environ["PYTHONUNBUFFERED"] = "1"
    with running(in_network=True) as agent:
        found: list[Figure] = []
        for name, part in PARTS.items():
            if not options.only or name in options.only:
                print(f"==> probes: {name}", file=sys.stderr, flush=True)  # noqa: T201
                found += attempted(lambda part=part: part(agent, options.quick))
        return found
