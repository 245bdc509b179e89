"""The processes of containers, as far as this machine shows them.

Comes in: a process and its container. Goes out: signals to it, and the news of its end. Implementation:
`adapters.processes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Processes(Protocol):
    """Their pids are the container runtime's."""

    def watched(self, pid: int, container_id: str, ended: Callable[[], None]) -> AbstractContextManager[None]:
        """Within it, `ended` is called once, on another thread, if the first process of the container ends. Never where
        it is not on this machine.
        """

    def signal(self, pid: int, container_id: str, command: Sequence[str], name: str) -> bool:
        """Send a signal (`SIGTERM` or `TERM`) to the first process of the container. False if it was not sent: the
        process is not on this machine, does not run `command` (yet), or has no handler for the signal; or the signal
        has no such name here. The kernel drops a signal without a handler, for the process is the first of its
        namespace; and before it runs its command, it is the runtime's own program, whose handlers say nothing of that.
        """


class NoProcesses:
    """None can be seen."""

    def watched(self, _pid: int, _container_id: str, _ended: Callable[[], None]) -> AbstractContextManager[None]:
        """See `Processes`."""
        return nullcontext()

    def signal(self, _pid: int, _container_id: str, _command: Sequence[str], _name: str) -> bool:
        """See `Processes`."""
        return False
