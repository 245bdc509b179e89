"""A tree of plain files that behaves like the kernel's cgroups, for tests and for machines without cgroups.

Input: a folder, the cgroup version. Output: a `Kernel` and `Cgroups` that use this folder. The contract suite is run
against this fake and against the real cgroups.

As in the kernel, a new cgroup has its files immediately (in v2 only those of the controllers enabled for it), memory
values are rounded down to pages, shares are bounded, and a cgroup with processes cannot be removed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from chronolet.adapters.cgroups.kernel import LinuxKernel
from chronolet.adapters.cgroups.marks import Marks
from chronolet.adapters.cgroups.mounts import Mounted
from chronolet.adapters.cgroups.tree import FolderTree
from chronolet.ports.machine.cgroups import CgroupTree, Driver
from chronolet.rules.resources.cgroups import LEAST_SHARES, MOST_SHARES

_PAGE = os.sysconf("SC_PAGE_SIZE")
_V1_MOST = (1 << 63) - _PAGE
_V1: Mapping[str, Mapping[str, str]] = {
    "cpu": {"cpu.shares": "1024", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "-1"},
    "memory": {"memory.limit_in_bytes": str(_V1_MOST), "memory.usage_in_bytes": "0"},
    "pids": {"pids.max": "max", "pids.current": "0"},
    "hugetlb": {"hugetlb.2MB.limit_in_bytes": str(_V1_MOST), "hugetlb.1GB.limit_in_bytes": str(_V1_MOST)},
    "freezer": {"freezer.state": "THAWED"},
}
_V2: Mapping[str, Mapping[str, str]] = {
    "cpu": {"cpu.weight": "100", "cpu.max": "max 100000"},
    "memory": {
        "memory.max": "max",
        "memory.min": "0",
        "memory.low": "0",
        "memory.high": "max",
        "memory.current": "0",
    },
    "pids": {"pids.max": "max", "pids.current": "0"},
    "hugetlb": {"hugetlb.2MB.max": "max", "hugetlb.1GB.max": "max"},
}
_CONTROL, _CONTROLLERS = "cgroup.subtree_control", "cgroup.controllers"


class KernelOfFiles(LinuxKernel):
    """Fake `Kernel` and `Cgroups` on plain files. `writes` counts changes; `refuse` takes a path and returns the error
    number to raise, or 0 to accept.
    """

    def __init__(self, folder: Path, version: int, controllers: Sequence[str] = ("cpu", "memory", "pids")) -> None:
        self.folder = folder
        self.version = version
        self.controllers = tuple(controllers)
        self.writes = 0
        self.refuse: Callable[[str], int] = lambda _: 0
        for point in self.points():
            Path(point).mkdir(parents=True, exist_ok=True)
            if version == 1:
                continue
            (Path(point) / _CONTROLLERS).write_text(" ".join(self.controllers))
            (Path(point) / _CONTROL).write_text("")

    def points(self) -> Sequence[str]:
        """Return the mount points of the hierarchies."""
        return [f"{self.folder}/{name}" for name in self.controllers] if self.version == 1 else [str(self.folder)]

    def mounts(self) -> Sequence[Mounted]:
        if self.version == 1:
            return [Mounted((name,), "/", self.folder / name, 1, writable=True) for name in self.controllers]
        return [Mounted((), "/", self.folder, self.version, writable=True)]

    def tree(self, driver: Driver) -> CgroupTree | None:
        """See `Cgroups.tree`."""
        return None if not driver else FolderTree(self.mounts(), driver, self, Marks(self.folder / "marks"))

    def why_not(self) -> str:
        return ""

    def write(self, path: str, text: str) -> None:
        self._may(path)
        folder, _, name = path.rpartition("/")
        if name == _CONTROL:
            enabled = set((self.read(path) or "").split()) | set(text.replace("+", "").split())
            text = " ".join(sorted(enabled))
            if not enabled <= set((self.read(f"{folder}/{_CONTROLLERS}") or "").split()):
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        super().write(path, "")
        os.truncate(path, 0)
        super().write(path, _normalized(name, text))
        self.writes += 1
        if name == _CONTROL:
            for child in self.folders(folder):
                self._fill(f"{folder}/{child}")

    def make(self, path: str) -> None:
        self._may(path)
        if not self.is_folder(path):
            super().make(path)
            self._fill(path)
            self.writes += 1

    def remove(self, path: str) -> None:
        self._may(path)
        if self.folders(path) or self.read(f"{path}/cgroup.procs"):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        for name in self.names(path):
            Path(path, name).unlink()
        super().remove(path)
        self.writes += 1

    def _fill(self, path: str) -> None:
        files = {"cgroup.procs": ""}
        if self.version == 1:
            files |= _V1[Path(path).relative_to(self.folder).parts[0]]
        else:
            handed = (self.read(f"{Path(path).parent}/{_CONTROL}") or "").split()
            files |= {_CONTROLLERS: " ".join(handed), _CONTROL: ""}
            for controller in handed:
                files |= _V2.get(controller, {})
        for name, text in files.items():
            file = Path(path) / name
            if not file.exists() or name == _CONTROLLERS:
                file.write_text(text)

    def _may(self, path: str) -> None:
        number = self.refuse(path)
        if number:
            raise OSError(number, os.strerror(number), path)


def _normalized(name: str, text: str) -> str:
    """Return the value that the kernel would store for a written value."""
    if name == "cpu.shares":
        return str(max(LEAST_SHARES, min(int(text), MOST_SHARES)))
    if name == "memory.limit_in_bytes":
        return str(_V1_MOST if text == "-1" else int(text) // _PAGE * _PAGE)
    if name == "cpu.max":
        return text if " " in text else f"{text} 100000"
    if name.startswith("memory.") and text != "max":
        return str(int(text) // _PAGE * _PAGE)
    return text
