"""The port to containers' processes, for those that run on this machine.

Input: a pid and its container's id. Output: signals to the process, a notification when it exits. Implementation:
`adapters.machine.processes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Processes(Protocol):
    """The first processes of containers, identified by the pids that the container runtime reports."""

    def watched(self, pid: int, container_id: str, ended: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `ended` once, on another thread, if the container's first process exits within the `with` block. It is
        never called if the process is not on this machine.
        """

    def signal(self, pid: int, container_id: str, command: Sequence[str], name: str) -> bool:
        """Send the signal `name` (`SIGTERM` or `TERM`) to the container's first process. Returns False if the signal
        was not sent, because the process is not on this machine, is not running `command` (yet) or has no handler for
        the signal, or because this machine does not know the signal's name.

        The kernel drops a signal to the first process of a namespace if the process has no handler for it. Until the
        process runs its command, it is still the runtime's own program, whose handlers do nothing.
        """

    def kill_left(self, container_id: str) -> int:
        """Send KILL to all processes of a container that the runtime has removed and forgotten, as long as there are
        any. Returns how many there were; 0 if they are not on this machine.
        """


class NoProcesses:
    """A `Processes` for machines on which the containers' processes are not visible."""

    def watched(self, _pid: int, _container_id: str, _ended: Callable[[], None]) -> AbstractContextManager[None]:
        """See `Processes`."""
        return nullcontext()

    def signal(self, _pid: int, _container_id: str, _command: Sequence[str], _name: str) -> bool:
        """See `Processes`."""
        return False

    def kill_left(self, _container_id: str) -> int:
        """See `Processes`."""
        return 0
