"""What an agent holds, and what runs in its containers, as the machine sees it.

Input: a node. Output: counts to be compared. Of each what every look finds: what is just at work is not held.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.e2e.node import Node

_LOOK_SECONDS = 6.0
"""Long enough for each probe that hangs to have ended."""
_PAUSE_SECONDS = 0.1
"""Between looks."""
_TIME_WAIT = "06"


class Held(NamedTuple):
    """gRPC's threads are counted apart. `sockets` are those of TCP, `files` all other descriptors."""

    threads: int
    children: int
    sockets: int
    files: int
    grpc: int

    def is_no_more_than(self, before: Held) -> bool:
        """But for what is kept for the next time."""
        return all(one <= then + slack for one, then, slack in zip(self, before, SLACK, strict=True))


SLACK = Held(threads=0, children=0, sockets=0, files=6, grpc=4)
"""Idle connections to the engine are kept, more after a busy time; gRPC's pool begins and ends threads as it likes."""


class _Things(NamedTuple):
    """What an agent has at a moment, by tids, pids and descriptors; in the order of `Held`."""

    threads: frozenset[str]
    children: frozenset[str]
    sockets: frozenset[str]
    files: frozenset[str]
    grpc: frozenset[str]


def held_all_the_time(node: Node) -> tuple[Held, Mapping[str, int]]:
    """How much of each was there in every look, the very same, and of processes in each container. What is at work
    comes and goes, and a busy machine has more of it at a time.
    """
    ours, inside = _things(node), _processes(node)
    for _ in range(round(_LOOK_SECONDS / _PAUSE_SECONDS)):
        time.sleep(_PAUSE_SECONDS)
        ours = _Things(*(before & now for before, now in zip(ours, _things(node), strict=True)))
        there = _processes(node)
        inside = {one: pids & there[one] for one, pids in inside.items() if one in there}
    return Held(*map(len, ours)), {one: len(pids) for one, pids in inside.items()}


def _processes(node: Node) -> dict[str, set[int]]:
    """Of each container."""
    return {one: set(pids) for one, pids in node.engine.processes().items()}


def _things(node: Node) -> _Things:
    agent = Path(f"/proc/{node.pid}")
    own, tasks = (agent / "comm").read_text(), list((agent / "task").iterdir())
    # Python gives its threads no names of their own, gRPC does.
    python = frozenset(one.name for one in tasks if _text(one / "comm") == own)
    children = frozenset(pid for one in tasks for pid in _text(one / "children").split())
    tcp = {f"socket:[{inode}]" for _, _, inode in _tcp(node.pid)}
    opened = {one.name: _target(one) for one in (agent / "fd").iterdir()}
    sockets = frozenset(there for there in opened.values() if there in tcp)
    files = frozenset(f"{number} {there}" for number, there in opened.items() if there not in tcp)
    return _Things(python, children, sockets, files, frozenset(one.name for one in tasks) - python)


def _text(path: Path) -> str:
    """Empty if what it is about has just ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


def _target(descriptor: Path) -> str:
    """Empty if it was just closed."""
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


def remembered(node: Node, ports: range) -> int:
    """Connections to these ports that are closed, and that the machine still keeps in mind."""
    return sum(state == _TIME_WAIT and port in ports for port, state, _ in _tcp(node.pid))


def _tcp(pid: int) -> Iterator[tuple[int, str, str]]:
    """Of each TCP socket in the agent's network: the other side's port, its state, its number."""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            yield int(fields[2].rpartition(":")[2], 16), fields[3], fields[9]
