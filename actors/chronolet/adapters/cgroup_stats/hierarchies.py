"""The machine's cgroup hierarchies, and the folders of one cgroup in each of them.

Input: /proc. Output: `Folders` of a cgroup's path. Next: `finder`, `reader`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from chronolet.adapters.cgroups.mounts import Mounted, mounted


class Folders(NamedTuple):
    """One cgroup: its path below the hierarchies' root, and its folder in each, empty if it has none there.

    `unified` is its folder in v2, which on a machine with both versions may have only pressure figures.
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
    """Read once: hierarchies do not change while the node runs."""

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
        """Whether a cgroup with this path exists."""
        return self._leading is not None and os.path.isdir(self._leading.below(path))  # noqa: PTH112 - a str is enough

    def folders(self, path: str) -> Folders:
        """Return the folders of a cgroup."""
        v1 = {name: self._below(name, path) for name in ("memory", "cpu", "cpuacct", "pids", "blkio")}
        unified = self._below("", path)
        if unified and any(v1.values()) and not os.path.isdir(unified):  # noqa: PTH112 - the same
            unified = ""
        return Folders(path=path, unified=unified, **v1)

    def _below(self, controller: str, path: str) -> str:
        mount = self._mounts.get(controller)
        return str(mount.below(path)) if mount is not None else ""
