"""Devices: the agent's share of an allocation, and the recovery of the state.

Input: options. Output: figures. There are a thousand devices, and a hundred pods that request one to eight each. The
plugins are replaced by functions that answer immediately; the RPCs of real plugins are measured separately. Each part
has a separate redis-server with `appendfsync always`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench.devices import allocation, replay
from tests.bench.figures import Figure
from tests.support.redis.server import PrivateRedis, private_redis

Part = Callable[[PrivateRedis, Path, bool], list[Figure]]

PARTS: dict[str, Part] = {"allocation": allocation.figures, "replay": replay.figures}


def figures(options: argparse.Namespace) -> list[Figure]:
    """Measure the selected parts, by default all, in order; return their figures."""
    found = []
    for name, part in PARTS.items():
        if options.only and name not in options.only:
            continue
        print(f"==> devices: {name}", file=sys.stderr, flush=True)  # noqa: T201
        with private_redis() as server:
            found += part(server, server.folder / "locks", options.quick)
    return found
