"""Which boot of the machine this is.

Comes in: nothing. Goes out: a text that is another one after each boot. Next: `cgroups.marks`, `node.wiring`.
"""

from __future__ import annotations

from pathlib import Path

FILE = Path("/proc/sys/kernel/random/boot_id")


def boot_id(file: Path = FILE) -> str:
    """Empty where the kernel does not tell."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""
