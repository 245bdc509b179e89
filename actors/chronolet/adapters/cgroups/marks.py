"""Ownership marks on the topmost cgroup, stored on the cgroup itself so that they vanish with it.

Input: a folder, an owner's name. Output: the owner's name. Next: `tree`. If the file system does not support extended
attributes, the name is stored in the state folder together with the boot id.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from chronolet.adapters.machine.boot import FILE, boot_id

_NAMES = ("user.chronolet.node", "trusted.chronolet.node")


class Marks:
    """Reads and writes ownership marks. `kept`: the agent's own folder, for marks that cannot be stored on a cgroup."""

    def __init__(self, kept: Path, boot: Path = FILE) -> None:
        self._kept = kept
        self._boot = boot

    def read(self, folder: str) -> str:
        """Return the owner's name; empty if unknown."""
        for name in _NAMES:
            try:
                return os.getxattr(folder, name).decode()
            except OSError:
                continue
        try:
            boot, _, owner = self._file(folder).read_text().partition(" ")
        except OSError:
            return ""
        return owner if boot == self._boot_id() else ""

    def write(self, folder: str, owner: str) -> None:
        """Store the owner's name. Raises OSError if neither the cgroup nor the agent's folder is writable."""
        for name in _NAMES:
            try:
                os.setxattr(folder, name, owner.encode())
            except OSError:
                continue
            return
        file = self._file(folder)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{self._boot_id()} {owner}")

    def _file(self, folder: str) -> Path:
        return self._kept / quote(folder, safe="")

    def _boot_id(self) -> str:
        return boot_id(self._boot) or "-"
