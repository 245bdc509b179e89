"""Python objects by package: the project's subpackages, each library, and the standard library as a whole.

Input: the path that was passed to `traced`. Output: MiB by package, largest first. Next: `memory`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from tests.bench.memory.traced import Snapshot
from tests.support import scratch

IMPORTER, STANDARD, GENERATED = "Python's importer", "the standard library", "generated code"
OWN = ("chronolet",)
"""Packages whose subpackages are listed individually."""
_BYTES_A_MIB = 1 << 20


def snapshot(path: Path) -> Snapshot:
    """Request a snapshot from the agent traced at `path`. Raises TimeoutError if the agent does not respond."""
    request, written = (path.with_name(f"{path.name}.{ending}") for ending in ("asked", "json"))
    request.touch()
    scratch.wait_until(lambda: not request.exists(), f"a snapshot in {written}", 60)
    return msgspec.json.decode(written.read_bytes(), type=Snapshot)


def held(found: Snapshot) -> dict[str, float]:
    """Return the MiB by package. The importer's memory is attributed to the files that it has loaded, in proportion to
    the size of their code. Some of that code is freed once a module has run, so these sizes may exceed the importer's
    memory.
    """
    totals: Counter[str] = Counter()
    for name, size in found.allocated.items():
        totals[package(name)] += size
    loaded = sum(found.code.values())
    share = min(1.0, totals[IMPORTER] / loaded) if loaded else 0.0
    for name, size in found.code.items():
        totals[package(name)] += round(size * share)
    totals[IMPORTER] -= round(loaded * share)
    return {name: size / _BYTES_A_MIB for name, size in totals.most_common()}


def package(name: str) -> str:
    """Return the package to which a code object's file name belongs."""
    if name.startswith("<frozen importlib"):
        return IMPORTER
    if name.startswith("<"):
        return STANDARD if name.startswith("<frozen") else GENERATED
    parts = Path(name).parts
    for folder in ("site-packages", "actors", "schemas"):
        if folder in parts:
            return _top(parts[parts.index(folder) + 1 :])
    return "the benchmark" if "tests" in parts else STANDARD


def _top(parts: tuple[str, ...]) -> str:
    """Return the package of a path below a folder of packages."""
    deep = 2 if parts[0] in OWN and len(parts) > 2 else 1
    return ".".join(parts[:deep]).removesuffix(".py")
