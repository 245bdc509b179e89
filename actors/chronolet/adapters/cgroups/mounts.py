"""Where the kernel's cgroup hierarchies are mounted: by what /proc says, never by name.

Comes in: /proc. Goes out: `Mounted`s. Next: `linux`, and the reader of usage.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_V1, _V2 = "cgroup", "cgroup2"


class Mounted(NamedTuple):
    """One hierarchy. `root` is what of its tree is seen at `point`; `controllers` are empty for v2."""

    controllers: tuple[str, ...]
    root: str
    point: Path
    version: int
    writable: bool

    def below(self, path: str) -> Path:
        """Where the cgroup of that path is seen here; a mount may show a part of the tree only."""
        inside = path.removeprefix(self.root) if self.root != "/" else path
        return self.point / inside.lstrip("/")


def mounted(proc: Path = Path("/proc")) -> Iterator[Mounted]:
    """All of them, in the order in which they were mounted."""
    for line in (proc / "self" / "mountinfo").read_text().splitlines():
        fields, _, source = line.partition(" - ")
        words, (kind, *_, options) = fields.split(), source.split()
        if kind in (_V1, _V2):
            # The mount and the file system below it may each be read-only.
            writable = "ro" not in words[5].split(",") and "ro" not in options.split(",")
            names = tuple(one for one in options.split(",") if one not in ("rw", "ro")) if kind == _V1 else ()
            yield Mounted(names, words[3], Path(words[4]), 1 if kind == _V1 else 2, writable)
