"""The machine's cgroup hierarchies, and the folders of a cgroup in each of them.

Input: /proc. Output: the `Folders` of a cgroup path. Next: `finder`, `reader`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from chronolet.adapters.cgroups.mounts import Mounted, mounted


class Folders(NamedTuple):
    """One cgroup: its path below the root of the hierarchies, and its folder for each controller; empty if the
    controller's hierarchy is not mounted.

    `unified` is its folder in v2, which may offer only pressure figures on a machine with both versions.
    """

    path: str
    memory: str
    cpu: str
    cpuacct: str
    pids: str
    blkio: str
    unified: str

    @property
    def is_v2(self) -> bool:
        return not self.memory


class Hierarchies:
    """The mounted hierarchies, read once: they do not change while the node is running. False if no usable one is
    mounted.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        found: dict[str, Mounted] = {}
        try:
            for one in mounted(proc):
                for controller in one.controllers or ("",):
                    found.setdefault(controller, one)
        except OSError:
            found = {}
        self._mounts: Mapping[str, Mounted] = found
        self._leading = found.get("memory") or found.get("cpuacct") or found.get("")

    def __bool__(self) -> bool:
        return self._leading is not None

    def has(self, path: str) -> bool:
        """Whether a cgroup with this path exists in the hierarchy of the memory controller, or else cpuacct, or else
        v2.
        """
        return self._leading is not None and os.path.isdir(self._leading.below(path))  # noqa: PTH112 - a str is enough

    def folders(self, path: str) -> Folders:
        """Return the folders of the cgroup with this path."""
        v1 = {name: self._below(name, path) for name in ("memory", "cpu", "cpuacct", "pids", "blkio")}
        unified = self._below("", path)
        if unified and any(v1.values()) and not os.path.isdir(unified):  # noqa: PTH112 - as above
            unified = ""
        return Folders(path=path, unified=unified, **v1)

    def _below(self, controller: str, path: str) -> str:
        mount = self._mounts.get(controller)
        return str(mount.below(path)) if mount is not None else ""
