"""Work that is split among processes: takeovers, how much two processes carry, and what one more process costs.

Input: options. Output: figures. Each part has a redis-server of its own. Next: `__main__`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from tests.bench.figures import Figure
from tests.bench.kernel import hop
from tests.bench.split import additional, carrying, decoding, takeover
from tests.support.redis.server import private_redis


def _hop(*, quick: bool) -> list[Figure]:
    with private_redis() as server:
        return hop.figures(server.url, server.client(), server.folder / "locks", 2 if quick else 7)


PARTS: dict[str, Callable[..., list[Figure]]] = {
    "takeover": takeover.figures,
    "carrying": carrying.figures,
    "hop": _hop,
    "decoding": decoding.figures,
    "additional": additional.figures,
}


def figures(options: argparse.Namespace) -> list[Figure]:
    """Measure the selected parts, by default all, in order; return their figures."""
    found = []
    for name, part in PARTS.items():
        if options.only and name not in options.only:
            continue
        print(f"==> split: {name}", file=sys.stderr, flush=True)  # noqa: T201
        found += part(quick=options.quick)
    return found
