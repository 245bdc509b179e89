"""Whose the topmost cgroup is: written on the cgroup itself, so that it goes with it.

Comes in: a folder, an owner's name. Goes out: the owner's name. Next: `tree`. Where a file system takes no attributes,
the name lies in the state folder, with the boot that it is of.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from chronolet.adapters.machine.boot import FILE, boot_id

_NAMES = ("user.chronolet.node", "trusted.chronolet.node")


class Marks:
    """`kept` is a folder of the agent's own."""

    def __init__(self, kept: Path, boot: Path = FILE) -> None:
        self._kept = kept
        self._boot = boot

    def read(self, folder: str) -> str:
        """The owner's name, empty if it has none that is known."""
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
        """OSError where neither can be written."""
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
