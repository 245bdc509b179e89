"""A day in two hours: pods of all kinds, kills each minute, overload for a third of the time, and an undisturbed
control node.

Input: the duration, the numbers of pods and of busy loops. Output: figures. Next: `tests.bench.__main__`.

The soaked node and the control node get the same pods, and the same containers break on both. Only on the soaked node
are agent, Redis and engine killed and the machine overloaded. At the end both must be in the same state.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tests.bench.figures import Figure
from tests.bench.soak.life import Plan, Result, lived

FULL = Plan(seconds=7_200, pods=110, loops=60)
QUICK = Plan(seconds=120, pods=12, loops=8)


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure one soak and its control node."""
    plan = QUICK if options.quick else FULL
    changes = {"seconds": options.seconds, "pods": options.pods, "loops": options.loops}
    found = lived(plan._replace(**{name: value for name, value in changes.items() if value is not None}))
    return _figures(found)


def _figures(found: Result) -> list[Figure]:
    kills = ", ".join(f"{name} {count}" for name, count in sorted(found.kills.items()))
    return [
        Figure(name="kills", ours=sum(found.kills.values()), unit="", note=kills),
        Figure(
            name="healthy containers restarted",
            ours=len(found.restarted),
            unit="",
            goal=0,
            note=_first(found.restarted),
        ),
        Figure(
            name="broken containers restarted",
            ours=found.broken_restarted,
            unit="",
            reference=found.broken,
            reference_name="broken",
            goal=1,
            bound="at least",
        ),
        Figure(
            name="pods in another state than the control node's",
            ours=len(found.differences),
            unit="",
            goal=0,
            note=_first(found.differences),
        ),
        _growth("agent's memory", found.begin.mib, found.end.mib, "MiB", 10),
        _growth("memory of its Redis without its history", found.begin.redis_mib, found.end.redis_mib, "MiB", 10),
        # There is no goal, because the history grows up to its bound.
        _growth("memory of its Redis for its history", found.begin.history_mib, found.end.history_mib, "MiB"),
        _growth("agent's descriptors", found.begin.files, found.end.files, "", 6),
        _growth("agent's threads", found.begin.threads, found.end.threads, "", 4),
        Figure(name="longest wait for an agent that acts again", ours=found.longest_return, unit="s"),
        Figure(name="entries of the log", ours=found.entries, unit=""),
    ]


def _growth(what: str, begin: float, end: float, unit: str, goal: float | None = None) -> Figure:
    note = f"{begin:.1f} at first, {end:.1f} at the end"
    return Figure(name=f"{what}, growth", ours=end - begin, unit=unit, goal=goal, note=note)


def _first(texts: Sequence[str]) -> str:
    return "; ".join(texts[:5])
