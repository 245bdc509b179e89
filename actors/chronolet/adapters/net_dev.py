"""The network interfaces of a process, from /proc/<pid>/net/dev.

Comes in: the file. Goes out: `Interface`s. Next: `machine`, `cgroup_usage`.
"""

from __future__ import annotations

from pathlib import Path

from chronolet.ports.runtime import Interface

_IGNORED = ("lo", "veth", "docker")
"""Interfaces that lead to containers on this machine only, as cAdvisor leaves them out."""
_COLUMNS = 16


def interfaces(path: Path) -> tuple[Interface, ...]:
    """What has gone through each. OSError, ValueError where the file is none."""
    found = []
    for line in path.read_text().splitlines()[2:]:
        name, _, rest = line.strip().partition(":")
        counts = [int(word) for word in rest.split()]
        if not name.startswith(_IGNORED) and len(counts) >= _COLUMNS:
            rx, tx = counts[:8], counts[8:]
            found.append(Interface(name=name, rx_bytes=rx[0], rx_errors=rx[2], tx_bytes=tx[0], tx_errors=tx[2]))
    return tuple(found)
