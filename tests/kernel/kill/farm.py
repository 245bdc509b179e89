"""Starts worker processes quickly: one parent process imports everything once and forks the workers.

Input: `WorkerJob`s on standard input, one JSON line each. Output: the pid of each worker. When the parent's input ends,
because the test has ended or was killed, the parent kills all workers that it has forked. Next: the tests, which use a
`Farm`.
"""

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec

from tests.kernel.kill import worker
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS

ROOT = Path(__file__).parents[3]


class Farm:
    """The parent process of the workers, and the pids of the workers that are alive."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.kernel.kill.farm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )
        self.live: list[int] = []

    def start(self, job: worker.WorkerJob) -> int:
        """Fork one more worker. Returns its pid."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(msgspec.json.encode(job) + b"\n")
        self._server.stdin.flush()
        pid = int(self._server.stdout.readline())
        self.live.append(pid)
        return pid

    def kill9(self, pid: int) -> None:
        self.live.remove(pid)
        scratch.kill([pid])

    def end(self) -> None:
        """Kill all live workers and the parent."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        assert self._server.wait(timeout=HANG_SECONDS) == 0


def _serve() -> None:
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # reaped by the system
    workers = []
    for line in sys.stdin.buffer:
        job = msgspec.json.decode(line, type=worker.WorkerJob)
        pid = os.fork()
        if pid == 0:
            _run_worker(job)
        workers.append(pid)
        print(pid, flush=True)  # noqa: T201 - the protocol
    scratch.kill([pid for pid in workers if _ours(pid)])


def _ours(pid: int) -> bool:
    return pid in scratch.children(os.getpid())


def _run_worker(job: worker.WorkerJob) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.close(0)
    os.dup2(2, 1)
    try:
        worker.run(job)
    except BaseException:  # noqa: BLE001 - the worker has recorded it; a fork must not continue as its parent
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    _serve()
