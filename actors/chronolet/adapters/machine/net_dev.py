"""The network interfaces that a process sees, from /proc/<pid>/net/dev.

Input: the file. Output: `Interface` records. Next: `usage`, `node.stats`.
"""

from __future__ import annotations

from pathlib import Path

from chronolet.ports.machine.usage import Interface

_IGNORED = ("lo", "veth", "docker")
"""Name prefixes of interfaces that are omitted, as in cAdvisor: loopback, and those that connect containers on this
machine.
"""
_COLUMNS = 16


def interfaces(path: Path) -> tuple[Interface, ...]:
    """Read the traffic counters of each interface. Raises OSError, or ValueError if the file is malformed."""
    return parsed(path.read_text())


def parsed(text: str) -> tuple[Interface, ...]:
    """Parse the content of /proc/<pid>/net/dev. Raises ValueError if it is malformed."""
    found = []
    for line in text.splitlines()[2:]:
        name, _, rest = line.strip().partition(":")
        counts = rest.split()
        if not name.startswith(_IGNORED) and len(counts) >= _COLUMNS:
            found.append(_interface(name, [int(word) for word in counts]))
    return tuple(found)


def _interface(name: str, counts: list[int]) -> Interface:
    return Interface(
        name=name,
        rx_bytes=counts[0],
        rx_packets=counts[1],
        rx_errors=counts[2],
        rx_dropped=counts[3],
        tx_bytes=counts[8],
        tx_packets=counts[9],
        tx_errors=counts[10],
        tx_dropped=counts[11],
    )
