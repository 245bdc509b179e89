"""The processes of containers, as far as this machine shows them.

Comes in: a process and its container. Goes out: the news of its end. Implementation: `adapters.processes`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Processes(Protocol):
    """Their pids are the container runtime's."""

    def watched(self, pid: int, container_id: str, ended: Callable[[], None]) -> AbstractContextManager[None]:
        """Within it, `ended` is called once, on another thread, if the first process of the container ends. Never where
        it is not on this machine.
        """


class NoProcesses:
    """None can be seen."""

    def watched(self, _pid: int, _container_id: str, _ended: Callable[[], None]) -> AbstractContextManager[None]:
        """See `Processes`."""
        return nullcontext()
