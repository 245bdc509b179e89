"""Agents that start in milliseconds: one parent process has imported everything and forks. SIGUSR1 makes an agent write
the stack of each thread to its log.

Input: `AgentJob`s on standard input, one JSON line each. Output: the pid of each agent, and its exit (pid and status).
At the end of its input (the test has ended or was killed) the parent kills all agents that it has forked. Next:
`service_manager` keeps an agent of an AgentFarm running.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import msgspec

from chronolet.node import main
from chronolet.node.settings.resolving import resolve
from tests.e2e.fault_injection.faults import Killer, KillTarget, Recorder
from tests.e2e.fault_injection.points import Point
from tests.support import scratch

ROOT = Path(__file__).parents[3]


class AgentJob(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent is started. `flags` are keyed by setting name. At most one of `recording` and `point` is set."""

    flags: dict[str, str]
    log: str
    recording: str = ""
    point: Point | None = None
    target: KillTarget = "agent"
    redis_pid: int = 0
    kill_marker: str = ""


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """An agent has ended. `status` is as in a shell, but negative if a signal killed the agent."""

    pid: int
    status: int


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """An agent was forked."""

    pid: int


class Agent:
    """One agent process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        self.ended = threading.Event()


class AgentFarm:
    """Starts the parent process and lets it fork agents. Thread-safe."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )
        self._request_lock = threading.Lock()
        self._started = threading.Semaphore(0)
        self._last: Agent | None = None
        self._agents: dict[int, Agent] = {}
        self._reader = threading.Thread(target=self._read, name="agent-farm", daemon=True)
        self._reader.start()

    def start(self, job: AgentJob) -> Agent:
        """Fork one more agent and return it."""
        assert self._server.stdin is not None
        with self._request_lock:
            self._server.stdin.write(msgspec.json.encode(job) + b"\n")
            self._server.stdin.flush()
            assert self._started.acquire(timeout=scratch.hang_limit(30)), "the agent farm does not answer"
            assert self._last is not None
            return self._last

    def end(self) -> None:
        """Kill all agents that are still running, and end the parent."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        assert self._server.wait(timeout=scratch.HANG_SECONDS) == 0

    def _read(self) -> None:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            message = msgspec.json.decode(line, type=Started | Ended)
            if isinstance(message, Started):
                self._last = self._agents[message.pid] = Agent(message.pid)
                self._started.release()
            else:
                agent = self._agents.pop(message.pid)
                agent.status = message.status
                agent.ended.set()


class _Server:
    """The parent process: forks an agent for each job that it reads, and reports when the agent ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[int] = set()

    def serve(self) -> None:
        gc.freeze()
        for line in sys.stdin.buffer:
            job = msgspec.json.decode(line, type=AgentJob)
            with self._lock:
                pid = os.fork()
                if pid == 0:
                    _become(job)
                self._running.add(pid)
                _send(Started(pid=pid))
            threading.Thread(target=self._await, args=(pid,), daemon=True).start()
        with self._lock:
            for pid in self._running:
                os.kill(pid, signal.SIGKILL)

    def _await(self, pid: int) -> None:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with self._lock:  # reaped only here: until then no other process can have its pid
            self._running.discard(pid)
            _, status = os.waitpid(pid, 0)
            _send(Ended(pid=pid, status=os.waitstatus_to_exitcode(status)))


def _send(message: Started | Ended) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


def _become(job: AgentJob) -> None:
    null, log = os.open(os.devnull, os.O_RDONLY), os.open(job.log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.register(signal.SIGUSR1)
    status = 70
    try:
        resolved, _ = resolve(job.flags, {})
        status = main.run(resolved, _faults(job))
    except BaseException:  # noqa: BLE001 - logged before the process exits
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)  # a fork must not continue as its parent


def _faults(job: AgentJob) -> Recorder | Killer | None:
    if job.recording:
        return Recorder(Path(job.recording))
    if job.point is not None:
        return Killer(job.point, job.target, job.redis_pid, Path(job.kill_marker))
    return None


if __name__ == "__main__":
    _Server().serve()
