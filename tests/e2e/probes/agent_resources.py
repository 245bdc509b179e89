"""The resources that an agent holds permanently, and the processes in its containers, as the machine sees them.

Input: a node. Output: counts that can be compared, of what exists in each of several samples. Anything that exists only
for a moment is not held.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.e2e.node import Node

_SAMPLING_SECONDS = 6.0
"""Seconds over which samples are taken: long enough for each hanging probe to end."""
_INTERVAL_SECONDS = 0.1
"""Seconds between two samples."""
_TIME_WAIT = "06"


class Held(NamedTuple):
    """Numbers of resources that an agent holds. gRPC's threads are counted separately. `sockets` are TCP sockets;
    `files`, all other descriptors.
    """

    threads: int
    children: int
    sockets: int
    files: int
    grpc: int

    def is_no_more_than(self, before: Held) -> bool:
        """Return whether no more is held than before, apart from what is kept for reuse."""
        return all(one <= then + slack for one, then, slack in zip(self, before, SLACK, strict=True))


SLACK = Held(threads=0, children=0, sockets=0, files=6, grpc=4)
"""Tolerated growth. Idle connections to the engine are kept, more of them after a busy time; gRPC's pool starts and
ends threads.
"""


class _Sample(NamedTuple):
    """The ids of what an agent has at a moment: threads, child processes and descriptors, in the order of `Held`."""

    threads: frozenset[str]
    children: frozenset[str]
    sockets: frozenset[str]
    files: frozenset[str]
    grpc: frozenset[str]


def permanently_held(node: Node) -> tuple[Held, Mapping[str, int]]:
    """Return how much exists in every sample, and the number of processes of each container. Work in progress comes and
    goes, and a busy machine has more of it at any time.
    """
    held, processes = _sample(node), _processes(node)
    for _ in range(round(_SAMPLING_SECONDS / _INTERVAL_SECONDS)):
        time.sleep(_INTERVAL_SECONDS)
        held = _Sample(*(before & current for before, current in zip(held, _sample(node), strict=True)))
        now = _processes(node)
        processes = {one: pids & now[one] for one, pids in processes.items() if one in now}
    return Held(*map(len, held)), {one: len(pids) for one, pids in processes.items()}


def _processes(node: Node) -> dict[str, set[int]]:
    """Return the pids of each container's processes."""
    return {one: set(pids) for one, pids in node.engine.processes().items()}


def _sample(node: Node) -> _Sample:
    agent = Path(f"/proc/{node.pid}")
    own, tasks = (agent / "comm").read_text(), list((agent / "task").iterdir())
    # Python does not name its threads, but gRPC does.
    python = frozenset(one.name for one in tasks if _text(one / "comm") == own)
    children = frozenset(pid for one in tasks for pid in _text(one / "children").split())
    tcp = {f"socket:[{inode}]" for _, _, inode in _tcp(node.pid)}
    targets = {one.name: _target(one) for one in (agent / "fd").iterdir()}
    sockets = frozenset(target for target in targets.values() if target in tcp)
    files = frozenset(f"{number} {target}" for number, target in targets.items() if target not in tcp)
    return _Sample(python, children, sockets, files, frozenset(one.name for one in tasks) - python)


def _text(path: Path) -> str:
    """Return the file's text, or an empty string if its process has just ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


def _target(descriptor: Path) -> str:
    """Return the target of a descriptor, or an empty string if it has just been closed."""
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


def in_time_wait(node: Node, ports: range) -> int:
    """Return the number of closed connections to these ports that are in state TIME_WAIT."""
    return sum(state == _TIME_WAIT and port in ports for port, state, _ in _tcp(node.pid))


def _tcp(pid: int) -> Iterator[tuple[int, str, str]]:
    """Yield for each TCP socket in the agent's network the remote port, its state and its inode."""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            yield int(fields[2].rpartition(":")[2], 16), fields[3], fields[9]
