"""Watch containers' processes through the kernel: the runtime reports an exit only after its clean-up.

Input: pids from the runtime. Output: calls. Next: `pod`'s workers, through the port. Source: pidfd_open(2).
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from chronolet.ports.runtime.processes import NoProcesses, Processes

_NEEDED = ("pidfd_open", "eventfd", "eventfd_write")
"""Python offers what its build system had: `pidfd_open` needs kernel headers from 5.3 on."""


def host_processes() -> Processes:
    """Return the processes of this machine, or none if this Python cannot watch them."""
    return HostProcesses() if all(hasattr(os, name) for name in _NEEDED) else NoProcesses()


class HostProcesses:
    """`ports.runtime.processes.Processes`, for an agent that shares the runtime's machine and pid namespace."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    @contextmanager
    def watched(self, pid: int, container_id: str, ended: Callable[[], None]) -> Iterator[None]:
        """See `Processes`."""
        with ExitStack() as stack:
            with suppress(OSError, RuntimeError):  # gone, or out of descriptors or threads: the runtime reports the end
                self._watch(stack, pid, container_id, ended)
            yield

    def _watch(self, stack: ExitStack, pid: int, container_id: str, ended: Callable[[], None]) -> None:
        if not pid:
            return
        process = os.pidfd_open(pid)
        stack.callback(os.close, process)
        # Open first: if the pid was reused, the descriptor belongs to the new process and this check fails.
        if container_id not in (self._proc / str(pid) / "cgroup").read_text():
            return
        over = os.eventfd(0)
        stack.callback(os.close, over)
        watcher = threading.Thread(target=_wait, args=(process, over, ended), name=f"process {pid}", daemon=True)
        watcher.start()
        stack.callback(watcher.join)
        stack.callback(os.eventfd_write, over, 1)


def _wait(process: int, over: int, ended: Callable[[], None]) -> None:
    poll = select.poll()
    for one in (process, over):
        poll.register(one, select.POLLIN)
    ready = {descriptor for descriptor, _ in poll.poll()}
    if over not in ready:
        ended()
