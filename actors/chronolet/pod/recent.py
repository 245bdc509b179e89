"""What this process knows of containers that it has just made or started, so that it need not ask the runtime.

Comes in: an id and what is known. Goes out: the same, or None where it was never known or is forgotten; then the
runtime is asked. Next: `containers`, `sandboxes`, which look here before they inspect.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Generic, NamedTuple, Self, TypeVar

from chronolet.ports.runtime import ContainerState

T = TypeVar("T")

MOST = 1_000
"""The oldest are forgotten first: most containers end by themselves, and nobody says so here."""


class Begun(NamedTuple):
    """What a stop needs to know of a container that runs: its first process, and the signal that ends it."""

    pid: int
    command: Sequence[str]
    stop_signal: str

    @classmethod
    def of(cls, running: ContainerState) -> Self:
        """As the runtime has it."""
        return cls(running.pid, running.command, running.stop_signal)


class Recent(Generic[T]):
    """What is known of each of the newest ids, for any thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, container_id: str, what: T) -> None:
        """Known from now on."""
        with self._lock:
            self._known[container_id] = what
            if len(self._known) > self._most:
                self._known.popitem(last=False)

    def take(self, container_id: str) -> T | None:
        """What is known, once."""
        with self._lock:
            return self._known.pop(container_id, None)
