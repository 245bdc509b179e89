"""What an agent holds, and what runs in its containers, as the machine sees it.

Comes in: a node. Goes out: counts to be compared. Of each the least of many looks: what is just at work is not held.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.e2e.node import Node

_PAUSE_SECONDS = 0.1
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


def looked(node: Node, seconds: float = 1.0) -> tuple[Held, Mapping[str, int]]:
    """The least of each in as many looks as fit into so long, and of processes in each container that is there all the
    time.
    """
    looks: list[Held] = []
    inside: list[dict[str, int]] = []
    for _ in range(round(seconds / _PAUSE_SECONDS)):  # by their number: a slow machine takes longer
        looks.append(_look(node))
        inside.append({one: len(pids) for one, pids in node.engine.processes().items()})
        time.sleep(_PAUSE_SECONDS)
    always = set.intersection(*map(set, inside))
    least = {one: min(look[one] for look in inside) for one in always}
    return Held(*map(min, zip(*looks, strict=True))), least


def remembered(node: Node, ports: range) -> int:
    """Connections to these ports that are closed, and that the machine still keeps in mind."""
    return sum(state == _TIME_WAIT and port in ports for port, state, _ in _tcp(node.pid))


def _look(node: Node) -> Held:
    agent = Path(f"/proc/{node.pid}")
    children = [word for task in agent.glob("task/*") for word in _text(task / "children").split()]
    ours = (agent / "comm").read_text()
    named = [_name(task) for task in (agent / "task").iterdir()]
    python = named.count(ours)
    files = [_target(one) for one in (agent / "fd").iterdir()]
    tcp = {f"socket:[{inode}]" for _, _, inode in _tcp(node.pid)}
    sockets = sum(one in tcp for one in files)
    return Held(python, len(children), sockets, len(files) - sockets, len(named) - python)


def _name(task: Path) -> str:
    """Python gives its threads none of their own, gRPC does."""
    return _text(task / "comm")


def _text(of_task: Path) -> str:
    """Empty if the task has just ended."""
    try:
        return of_task.read_text()
    except OSError:
        return ""


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""  # closed meanwhile


def _tcp(pid: int) -> Iterator[tuple[int, str, str]]:
    """Of each TCP socket in the agent's network: the other side's port, its state, its number."""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            yield int(fields[2].rpartition(":")[2], 16), fields[3], fields[9]
