"""The ends of containers' processes, as the kernel tells them: the container runtime tells when it has tidied up.

Comes in: pids as the runtime gives them. Goes out: calls. Next: `pod`'s workers, by the port. Source: pidfd_open(2).
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from chronolet.ports.processes import NoProcesses, Processes

_NEEDED = ("pidfd_open", "eventfd", "eventfd_write")
"""Python has what the system that it was built on has: `pidfd_open` with kernel headers from 5.3 on."""


def host_processes() -> Processes:
    """Those of this machine, or none where this Python cannot watch them."""
    return HostProcesses() if all(hasattr(os, name) for name in _NEEDED) else NoProcesses()


class HostProcesses:
    """`ports.processes.Processes`, for an agent that shares the runtime's machine and pid namespace."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    @contextmanager
    def watched(self, pid: int, container_id: str, ended: Callable[[], None]) -> Iterator[None]:
        """See `Processes`."""
        with ExitStack() as stack:
            with suppress(OSError, RuntimeError):  # gone already, no more descriptors or threads: the runtime tells it
                self._watch(stack, pid, container_id, ended)
            yield

    def _watch(self, stack: ExitStack, pid: int, container_id: str, ended: Callable[[], None]) -> None:
        if not pid:
            return
        process = os.pidfd_open(pid)
        stack.callback(os.close, process)
        if container_id not in (self._proc / str(pid) / "cgroup").read_text():
            return  # its pid is somebody else's by now
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
