"""The port to containers' processes, if they run on this machine.

Input: a pid and its container's id. Output: signals to the process, notification of its end. Implementation:
`adapters.machine.processes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Processes(Protocol):
    """The first processes of containers, by the pids that the container runtime reports."""

    def watched(self, pid: int, container_id: str, ended: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `ended` once, on another thread, if the container's first process ends within the block. Never called if
        the process is not on this machine.
        """

    def signal(self, pid: int, container_id: str, command: Sequence[str], name: str) -> bool:
        """Send the signal `name` (`SIGTERM` or `TERM`) to the container's first process. False if it was not sent: the
        process is not on this machine, does not run `command` (yet) or has no handler for the signal, or the name is
        unknown here. The kernel drops a signal to the first process of a namespace if it has no handler; until the
        process runs its command, it is still the runtime's own program, whose handlers do nothing.
        """


class NoProcesses:
    """A `Processes` for machines on which the containers' processes are not visible."""

    def watched(self, _pid: int, _container_id: str, _ended: Callable[[], None]) -> AbstractContextManager[None]:
        """See `Processes`."""
        return nullcontext()

    def signal(self, _pid: int, _container_id: str, _command: Sequence[str], _name: str) -> bool:
        """See `Processes`."""
        return False
