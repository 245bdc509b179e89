"""Stopped processes, frozen disks, and processes without free file descriptors.

Input: pids, or folders that are mount points. Output: context managers that undo everything on exit.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.support.scratch import HANG_SECONDS

_FREEZE = 'fsfreeze --freeze "$1" && echo frozen && read -r _; fsfreeze --unfreeze "$1"'


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """Stop these processes while the block runs."""
    with ExitStack() as stack:
        for pid in pids:
            stack.callback(_signal, pid, signal.SIGCONT)
            os.kill(pid, signal.SIGSTOP)
        yield


def are_stopped(pids: Sequence[int]) -> bool:
    """Return whether all threads of these processes have stopped: after SIGSTOP, a thread first finishes its current
    system call.
    """
    try:
        stats = [(task / "stat").read_text() for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):  # a thread has just ended
        return False
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it was killed in the meantime
        os.kill(pid, number)


@contextmanager
def frozen_disks(*folders: Path) -> Iterator[None]:
    """Freeze these file systems while the block runs, so that writers wait. They thaw even if this process is killed,
    since the shell that froze them then reads the end of its input.
    """
    with ExitStack() as stack:
        for folder in folders:
            shell = stack.enter_context(
                subprocess.Popen(["sh", "-c", _FREEZE, "sh", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            assert shell.stdin is not None
            assert shell.stdout is not None
            stack.callback(shell.stdin.close)
            assert select.select([shell.stdout], [], [], HANG_SECONDS)[0], f"{folder} could not be frozen"
            assert shell.stdout.readline() == b"frozen\n"
        yield


@contextmanager
def no_descriptor_left(*pids: int) -> Iterator[None]:
    """Lower the descriptor limit of the processes to 3 while the block runs, so that they cannot open anything."""
    with ExitStack() as stack:
        for pid in pids:
            soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
            stack.callback(_restore_limits, pid, (soft, hard))
        yield


def _restore_limits(pid: int, limits: tuple[int, int]) -> None:
    # The process may have ended: dockerd replaces a containerd that has not responded for a while.
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
