"""Identifies the code that folds a kind's events: a checkpoint counts only for the code that has made it.

Input: a kind. Output: its `Version`, with a digest of the source files. It is the same on every machine
that has the same release. Next: `upkeep`, `history.state`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import chronolet
import chronolet_schemas
from chronolet.history.derived.checkpoint import Version

SHARED = ("rules", "kernel/decider.py", "kernel/folding.py", "kernel/step/snapshots.py")
"""The code, below the package, that the fold of any kind may use, besides the kind's own folder and the schemas."""
_DIGEST_BYTES = 12


class _Kind(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def format(self) -> int: ...


def version_of(kind: _Kind) -> Version:
    """Return what the states of a kind depend on, as this release folds them."""
    return Version(kind.format, code_of(kind.name))


@functools.lru_cache
def code_of(kind: str) -> str:
    """Return a digest of the code that folds this kind's events; empty if its source is not installed: then there
    are no checkpoints.

    A process calls this when it starts: later, the code on disk may be of another release than the code in memory.
    """
    return _digest(kind, _shared_at_first())


def unchanged(versions: Mapping[str, Version]) -> bool:
    """Return whether the code on disk still is that of these versions: an upgrade may have replaced it."""
    shared = _shared()
    return all(version.code == _digest(kind, shared) for kind, version in versions.items())


def _digest(kind: str, shared: bytes) -> str:
    package = Path(chronolet.__path__[0])
    own = list(_sources(package / kind))
    return _hash(package, own, shared).hex() if own else ""


@functools.lru_cache
def _shared_at_first() -> bytes:
    return _shared()


def _shared() -> bytes:
    """Return a digest of the code that all kinds share."""
    package, schemas = Path(chronolet.__path__[0]), Path(chronolet_schemas.__path__[0])
    code = _hash(package, [path for part in SHARED for path in _sources(package / part)])
    return _hash(schemas, _sources(schemas), code)


def _hash(base: Path, paths: Iterable[Path], before: bytes = b"") -> bytes:
    digest = hashlib.blake2b(before, digest_size=_DIGEST_BYTES)
    for path in paths:
        digest.update(f"{path.relative_to(base)}\n".encode())
        # Not there any more: an upgrade is replacing the files.
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.digest()


def _sources(path: Path) -> Iterator[Path]:
    """Yield the source files below a folder, in a fixed order, or the file itself."""
    yield from (sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else ())
