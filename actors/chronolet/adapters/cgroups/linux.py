"""The machine's cgroups, found through its mounts.

Input: /proc, /run/systemd/system, and the agent's own folder, for ownership marks that a cgroup cannot store. Output: a
cgroup tree for the runtime's driver, or the reason why there is none. Next: qos' effects, through the port; `get
cgroups`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from chronolet.adapters.cgroups.kernel import Kernel, LinuxKernel
from chronolet.adapters.cgroups.marks import Marks
from chronolet.adapters.cgroups.mounts import Mounted, mounted
from chronolet.adapters.cgroups.systemd import SystemdTree, systemd_runs
from chronolet.adapters.cgroups.tree import FolderTree
from chronolet.ports.machine.cgroups import CgroupTree, Driver


class LinuxCgroups:
    """Implements `ports.machine.cgroups.Cgroups`. `kept` is the agent's own folder, for data that the kernel does not
    store.
    """

    def __init__(self, kept: Path, proc: Path = Path("/proc"), kernel: Kernel | None = None) -> None:
        self._kept = kept
        self._proc = proc
        self._kernel = kernel or LinuxKernel()
        self._trees: dict[Driver, CgroupTree] = {}

    def tree(self, driver: Driver) -> CgroupTree | None:
        mounts = self._mounts() if driver else []
        if not driver or _obstacle(mounts):
            return None
        if driver not in self._trees:
            made = SystemdTree if driver == "systemd" and systemd_runs() else FolderTree
            self._trees[driver] = made(mounts, driver, self._kernel, Marks(self._kept))
        return self._trees[driver]

    def why_not(self) -> str:
        return _obstacle(self._mounts())

    def _mounts(self) -> list[Mounted]:
        """Return each hierarchy once, at its first mount point."""
        found: dict[tuple[str, ...], Mounted] = {}
        for one in mounted(self._proc):
            found.setdefault(one.controllers, one)
        return list(found.values())


def _obstacle(mounts: Sequence[Mounted]) -> str:
    if not mounts:
        return "no cgroups are mounted"
    for one in mounts:
        if not one.writable:
            return f"{one.point} is mounted read-only"
        if not os.access(one.point, os.W_OK):
            return f"no permission to write to {one.point}"
    return ""
