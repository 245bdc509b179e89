"""Identify the current boot of the machine.

Input: none. Output: an id that differs after each boot. Next: `cgroups.marks`, `node.composition.wiring`.
"""

from __future__ import annotations

from pathlib import Path

FILE = Path("/proc/sys/kernel/random/boot_id")


def boot_id(file: Path = FILE) -> str:
    """Return the boot id; empty if the kernel does not provide it."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""
