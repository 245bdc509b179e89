"""Containers' processes, by way of the kernel: their ends, which the runtime reports only after tidying up, and
signals, for each of which the runtime starts a program.

Comes in: pids as the runtime gives them. Goes out: calls. Next: `pod`'s workers, by the port. Source: pidfd_open(2),
pidfd_send_signal(2).
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from chronolet.ports.processes import NoProcesses, Processes

_NEEDED = ((os, "pidfd_open"), (os, "eventfd"), (os, "eventfd_write"), (signal, "pidfd_send_signal"))
"""Python has what the system that it was built on has: `pidfd_open` with kernel headers from 5.3 on."""

_SIGNALS = {one.name.removeprefix("SIG"): one for one in signal.Signals}


def host_processes() -> Processes:
    """Those of this machine, or none where this Python cannot watch them."""
    return HostProcesses() if all(hasattr(module, name) for module, name in _NEEDED) else NoProcesses()


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

    def signal(self, pid: int, container_id: str, command: Sequence[str], name: str) -> bool:
        """See `Processes`. One of the real-time signals that have no name of their own (`RTMIN+3`) is not sent."""
        number = _SIGNALS.get(name.removeprefix("SIG"))
        with ExitStack() as stack, suppress(OSError):
            process = self._opened(stack, pid, container_id)
            if process is not None and number is not None and self._catches(pid, command, number):
                signal.pidfd_send_signal(process, number)
                return True
        return False

    def _catches(self, pid: int, command: Sequence[str], number: int) -> bool:
        """Whether the process runs the command, and has a handler for the signal: one that has just been started may
        not yet. In this order: the runtime's own program, which it is at first, has handlers for all signals.
        """
        words = b"".join(one.encode() + b"\0" for one in command)
        if not words or (self._proc / str(pid) / "cmdline").read_bytes() != words:
            return False
        for line in (self._proc / str(pid) / "status").read_text().splitlines():
            name, _, mask = line.partition(":")
            if name == "SigCgt":
                return bool(int(mask, 16) >> (number - 1) & 1)
        return False

    def _opened(self, stack: ExitStack, pid: int, container_id: str) -> int | None:
        """The process's descriptor, None if it is not the container's. OSError if there is no such process."""
        if not pid:
            return None
        process = os.pidfd_open(pid)
        stack.callback(os.close, process)
        # Opened first: should the pid have become somebody else's by now, so has the descriptor.
        return process if container_id in (self._proc / str(pid) / "cgroup").read_text() else None

    def _watch(self, stack: ExitStack, pid: int, container_id: str, ended: Callable[[], None]) -> None:
        process = self._opened(stack, pid, container_id)
        if process is None:
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
