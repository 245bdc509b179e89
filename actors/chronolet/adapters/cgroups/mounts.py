"""Find the mount points of the kernel's cgroup hierarchies in /proc, without assuming their paths.

Input: /proc. Output: `Mounted` records. Next: `linux`, `containers`, `cgroup_stats`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_V1, _V2 = "cgroup", "cgroup2"
_OF_V2 = ("memory", "cpu", "pids", "hugetlb")


class Mounted(NamedTuple):
    """One mounted hierarchy. `root` is the part of its tree visible at `point`; `controllers` is empty for v2."""

    controllers: tuple[str, ...]
    root: str
    point: Path
    version: int
    writable: bool

    def below(self, path: str) -> Path:
        """Return the folder of a cgroup below this mount point, where only a part of the tree may be visible."""
        inside = path.removeprefix(self.root) if self.root != "/" else path
        return self.point / inside.lstrip("/")


def mounted(proc: Path = Path("/proc")) -> Iterator[Mounted]:
    """Yield every mount of a cgroup hierarchy, in mount order; a hierarchy may be mounted several times."""
    for line in (proc / "self" / "mountinfo").read_text().splitlines():
        fields, _, source = line.partition(" - ")
        if not source.startswith(_V1):  # skips the many mounts of containers
            continue
        words, (kind, *_, options) = fields.split(), source.split()
        if kind in (_V1, _V2):
            # The mount and the file system below it may each be read-only.
            writable = "ro" not in words[5].split(",") and "ro" not in options.split(",")
            names = tuple(one for one in options.split(",") if one not in ("rw", "ro")) if kind == _V1 else ()
            yield Mounted(names, words[3], Path(words[4]), 1 if kind == _V1 else 2, writable)


def of_process(pid: int, proc: Path = Path("/proc")) -> dict[str, Path]:
    """Return the cgroup folder of a process for each controller; a controller without a v1 hierarchy maps to the
    process's v2 cgroup. Raises OSError if the process no longer exists.
    """
    mounts = {name: one for one in mounted(proc) for name in one.controllers or ("",)}
    found: dict[str, Path] = {}
    unified: Path | None = None
    for line in (proc / str(pid) / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller not in mounts:
                continue
            folder = mounts[controller].below(path)
            if controller:
                found[controller] = folder
            else:
                unified = folder
    if unified is not None:
        for controller in _OF_V2:
            found.setdefault(controller, unified)
    return found
