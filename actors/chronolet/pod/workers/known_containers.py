"""A bounded cache of facts about containers that this process created or started; it saves inspects.

Input: an id and a fact. Output: the fact, or None if it is unknown or evicted. Next: `containers` and `sandboxes`,
which inspect the container only after a miss.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Generic, NamedTuple, Self, TypeVar

from chronolet.ports.runtime.runtime import ContainerState

T = TypeVar("T")

MOST = 1_000
"""Maximum number of entries; the oldest are evicted first. A limit is needed because most containers end without a
`take`."""


class MainProcess(NamedTuple):
    """What a stop needs to know about a running container: the pid and command of its main process, and its stop
    signal.
    """

    pid: int
    command: Sequence[str]
    stop_signal: str

    @classmethod
    def of(cls, running: ContainerState) -> Self:
        """Extract these facts from an inspected running container."""
        return cls(running.pid, running.command, running.stop_signal)


class KnownContainers(Generic[T]):
    """Maps container ids to one fact about each container; keeps only the newest entries. Thread-safe."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, container_id: str, what: T) -> None:
        """Record a fact."""
        with self._lock:
            self._known[container_id] = what
            if len(self._known) > self._most:
                self._known.popitem(last=False)

    def take(self, container_id: str) -> T | None:
        """Remove and return the fact; None if it is unknown."""
        with self._lock:
            return self._known.pop(container_id, None)
