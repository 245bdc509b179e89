"""How fast questions about the past are answered, on a million events.

Input: options. Output: figures, each next to its goal. The events are those of a real agent, repeated (`million`); they
are in archive files of the usual size with indexes and checkpoints, the newest also in a real Redis. Commands run as
users run them, each in a process of its own; their times include the start of Python. Next: `__main__`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tests.bench.figures import Figure
from tests.bench.history import parts
from tests.bench.history.node import long_past

EVENTS, QUICK_EVENTS = 1_000_000, 100_000
ROUNDS, QUICK_ROUNDS = 5, 1


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure commands about the past, the fold of one pod, and the cost of indexes and checkpoints."""
    events, rounds = (QUICK_EVENTS, QUICK_ROUNDS) if options.quick else (EVENTS, ROUNDS)
    with long_past(events) as past:
        return [
            *parts.commands(past, rounds),
            *parts.without_indexes(past),
            *parts.folding(past, rounds),
            *parts.upkeep(past),
        ]
