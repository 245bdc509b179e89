"""Devices: the agent's share of an allocation, and the recovery of the state.

Input: how thoroughly. Output: figures. A thousand devices, a hundred pods that ask for one to eight each; plugins
that answer immediately replace those of the goal, whose RPCs are measured separately. Each part has a redis-server of
its own, `appendfsync always`.
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
    """Every part's figures, in order."""
    found = []
    for name, part in PARTS.items():
        if options.only and name not in options.only:
            continue
        print(f"==> devices: {name}", file=sys.stderr, flush=True)  # noqa: T201
        with private_redis() as server:
            found += part(server, server.folder / "locks", options.quick)
    return found
