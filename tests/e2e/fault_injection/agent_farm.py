"""Agents that cost next to nothing to start: one parent has imported everything, and forks. SIGUSR1 makes an agent
write into its log what each thread is doing.

Input: `AgentJob`s on standard input, one JSON line each. Output: the pid of each agent, and its end (pid and
status) when it has ended. At the end of its input (the test is over, or was itself killed) it kills all that it has
forked. Next: `keeping` holds a Farm.
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
from tests.e2e.fault_injection.faults import Recorder, Striker, Victim
from tests.e2e.fault_injection.points import Point
from tests.support import scratch

ROOT = Path(__file__).parents[3]


class AgentJob(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is started with. `flags` by the settings' names. At most one of `record` and `point`."""

    flags: dict[str, str]
    log: str
    record: str = ""
    point: Point | None = None
    victim: Victim = "agent"
    redis_pid: int = 0
    struck: str = ""


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """An agent is over; `status` as a shell has it, negative for the signal that killed it."""

    pid: int
    status: int


class Began(msgspec.Struct, frozen=True, kw_only=True, tag="began"):
    """An agent was forked."""

    pid: int


class Agent:
    """One agent process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        self.over = threading.Event()


class Farm:
    """The parent of the agents. Safe to use from any thread."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )
        self._asking = threading.Lock()
        self._began = threading.Semaphore(0)
        self._last: Agent | None = None
        self._agents: dict[int, Agent] = {}
        self._reader = threading.Thread(target=self._read, name="farm", daemon=True)
        self._reader.start()

    def start(self, job: AgentJob) -> Agent:
        """Fork one more agent."""
        assert self._server.stdin is not None
        with self._asking:
            self._server.stdin.write(msgspec.json.encode(job) + b"\n")
            self._server.stdin.flush()
            assert self._began.acquire(timeout=scratch.hang_limit(30)), "the farm does not answer"
            assert self._last is not None
            return self._last

    def end(self) -> None:
        """Kill all that still live, and the parent."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        assert self._server.wait(timeout=scratch.HANG_SECONDS) == 0

    def _read(self) -> None:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            word = msgspec.json.decode(line, type=Began | Ended)
            if isinstance(word, Began):
                self._last = self._agents[word.pid] = Agent(word.pid)
                self._began.release()
            else:
                agent = self._agents.pop(word.pid)
                agent.status = word.status
                agent.over.set()


class _Server:
    """The parent, in its own process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living: set[int] = set()

    def serve(self) -> None:
        gc.freeze()
        for line in sys.stdin.buffer:
            job = msgspec.json.decode(line, type=AgentJob)
            with self._lock:
                pid = os.fork()
                if pid == 0:
                    _become(job)
                self._living.add(pid)
                _say(Began(pid=pid))
            threading.Thread(target=self._await, args=(pid,), daemon=True).start()
        with self._lock:
            for pid in self._living:
                os.kill(pid, signal.SIGKILL)

    def _await(self, pid: int) -> None:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with self._lock:  # reaped only now: until then no other process can have its pid
            self._living.discard(pid)
            _, status = os.waitpid(pid, 0)
            _say(Ended(pid=pid, status=os.waitstatus_to_exitcode(status)))


def _say(word: Began | Ended) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(word) + b"\n")
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
    except BaseException:  # noqa: BLE001 - into the agent's log, and out
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)  # a fork must not go on as its parent


def _faults(job: AgentJob) -> Recorder | Striker | None:
    if job.record:
        return Recorder(Path(job.record))
    if job.point is not None:
        return Striker(job.point, job.victim, job.redis_pid, Path(job.struck))
    return None


if __name__ == "__main__":
    _Server().serve()
