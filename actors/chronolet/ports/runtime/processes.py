"""The port to containers' processes, if they run on this machine.

Input: a pid and its container's id. Output: notification of its end. Implementation: `adapters.processes`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Processes(Protocol):
    """The first processes of containers, by the pids that the container runtime reports."""

    def watched(self, pid: int, container_id: str, ended: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `ended` once, on another thread, if the container's first process ends within the block. Never called if
        the process is not on this machine.
        """


class NoProcesses:
    """For machines on which the containers' processes are not visible."""

    def watched(self, _pid: int, _container_id: str, _ended: Callable[[], None]) -> AbstractContextManager[None]:
        """See `Processes`."""
        return nullcontext()
