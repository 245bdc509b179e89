"""The kernel's speed and size, compared with redis-py alone on the same server in the same run.

Input: options. Output: figures. Each part has a separate redis-server with `appendfsync always`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench.figures import Figure
from tests.bench.kernel import hop, idle, replay, writing
from tests.support.redis.server import PrivateRedis, private_redis

Part = Callable[[PrivateRedis, Path, bool], list[Figure]]


def _writing(server: PrivateRedis, locks: Path, quick: bool) -> list[Figure]:
    return writing.figures(server.url, server.client(), locks, 2 if quick else 7)


def _hop(server: PrivateRedis, locks: Path, quick: bool) -> list[Figure]:
    return hop.figures(server.url, server.client(), locks, 2 if quick else 7)


def _replay(server: PrivateRedis, locks: Path, quick: bool) -> list[Figure]:
    events, rounds = (120_000, 4) if quick else (1_000_000, 15)
    return replay.figures(server.url, server.client(timeout=60), locks, events, rounds)


def _idle(server: PrivateRedis, locks: Path, quick: bool) -> list[Figure]:
    return idle.figures(server.url, server.pid, locks, 5.0 if quick else 60.0)


PARTS: dict[str, Part] = {"writing": _writing, "hop": _hop, "replay": _replay, "idle": _idle}


def figures(options: argparse.Namespace) -> list[Figure]:
    """Measure the selected parts, by default all, in order; return their figures."""
    found = []
    for name, part in PARTS.items():
        if options.only and name not in options.only:
            continue
        print(f"==> engine: {name}", file=sys.stderr, flush=True)  # noqa: T201
        with private_redis() as server:
            locks = server.folder / "locks"
            found += part(server, locks, options.quick)
    return found
