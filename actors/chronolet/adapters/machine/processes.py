"""Watch and signal containers' processes through the kernel. This is faster than through the runtime, which reports an
exit only after its clean-up, and starts a program for each signal.

Input: pids from the runtime. Output: callbacks on exit, signals sent. Next: `pod`'s workers, through the port. Source:
pidfd_open(2), pidfd_send_signal(2).
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from chronolet.ports.runtime.processes import NoProcesses, Processes

_NEEDED = ((os, "pidfd_open"), (os, "eventfd"), (os, "eventfd_write"), (signal, "pidfd_send_signal"))
"""The functions that `HostProcesses` needs. Python has only those that its build machine supported: `pidfd_open` needs
kernel headers 5.3 or newer.
"""

_SIGNALS = {one.name.removeprefix("SIG"): one for one in signal.Signals}


def host_processes() -> Processes:
    """Return the processes of this machine, or `NoProcesses` if this Python cannot watch processes."""
    return HostProcesses() if all(hasattr(module, name) for module, name in _NEEDED) else NoProcesses()


class HostProcesses:
    """Implements `ports.runtime.processes.Processes` for an agent in the same pid namespace as the runtime."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    @contextmanager
    def watched(self, pid: int, container_id: str, ended: Callable[[], None]) -> Iterator[None]:
        """See `Processes`."""
        with ExitStack() as stack:
            with suppress(
                OSError, RuntimeError
            ):  # gone, or out of descriptors or threads: the runtime reports the exit
                self._watch(stack, pid, container_id, ended)
            yield

    def signal(self, pid: int, container_id: str, command: Sequence[str], name: str) -> bool:
        """See `Processes`. Real-time signals that have no name of their own (such as `RTMIN+3`) are not sent."""
        number = _SIGNALS.get(name.removeprefix("SIG"))
        with ExitStack() as stack, suppress(OSError):
            process = self._opened(stack, pid, container_id)
            if process is not None and number is not None and self._catches(pid, command, number):
                signal.pidfd_send_signal(process, number)
                return True
        return False

    def kill_left(self, container_id: str) -> int:
        """See `Processes`."""
        killed: set[int] = set()
        while left := self._pids(container_id) - killed:  # a killed process may have started another one just before
            for pid in left:
                with ExitStack() as stack, suppress(OSError):
                    process = self._opened(stack, pid, container_id)
                    if process is not None:
                        signal.pidfd_send_signal(process, signal.SIGKILL)
            killed |= left
        return len(killed)

    def _pids(self, container_id: str) -> set[int]:
        """Return the pids of the processes whose cgroup is the container's, or below it."""
        found: set[int] = set()
        for path in self._proc.glob("[0-9]*/cgroup"):
            with suppress(OSError):  # it has just ended
                if container_id in path.read_text():
                    found.add(int(path.parent.name))
        return found

    def _catches(self, pid: int, command: Sequence[str], number: int) -> bool:
        """Whether the process runs the command and has a handler for the signal; a process that has just started may
        not have one yet. The command must be checked first, because the process initially runs the runtime's own
        program, which handles all signals.
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
        """Return a descriptor of the process; None if it does not belong to the container. Raises OSError if it no
        longer exists.
        """
        if not pid:
            return None
        process = os.pidfd_open(pid)
        stack.callback(os.close, process)
        # Open first: if the pid was reused, the descriptor belongs to the new process and this check fails.
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
