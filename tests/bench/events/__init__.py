"""KubeEvents: the speed of correlation, the cost of a flood, and the time from a container's death to the log line that
reports it.

Input: options. Output: figures. The benchmark starts its own servers and engine. Next: `correlation` (the decider
alone), `flood` (a separate process on Redis), `line` (a whole agent on Docker).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from tests.bench.events import correlation, flood, line
from tests.bench.figures import Figure

PARTS: dict[str, Callable[[bool], list[Figure]]] = {
    "correlation": correlation.figures,
    "flood": flood.figures,
    "line": line.figures,
}


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure the selected parts, by default all, in order; return their figures."""
    found: list[Figure] = []
    for name, part in PARTS.items():
        if not options.only or name in options.only:
            print(f"==> events: {name}", file=sys.stderr, flush=True)  # noqa: T201
            found += part(options.quick)
    return found
