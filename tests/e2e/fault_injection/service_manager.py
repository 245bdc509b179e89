"""A service manager for agents under test: it restarts an agent that has died, and the agent's redis-server.

Input: how the first agent is started. Output: agents, one after the other, until `stop`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import msgspec

from tests.e2e.fault_injection import faults
from tests.e2e.fault_injection.agent_farm import AgentFarm, AgentJob
from tests.e2e.journal import Journal
from tests.support import scratch
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS

KILL_WITHIN_SECONDS = 15
"""Seconds to wait for the kill at the end of a run: it may come only at the very last effect, or never."""


class ServiceManager:
    """Keeps one agent running."""

    def __init__(self, farm: AgentFarm, server: PrivateRedis, job: AgentJob) -> None:
        self._farm = farm
        self._server = server
        self._job = job
        self.exits: list[int] = []
        """Exit statuses of the agents that ended by themselves."""
        self._server_restarted = False
        self._stopping = threading.Event()
        self._agent = farm.start(job)
        self._thread = threading.Thread(target=self._run, name="service-manager", daemon=True)
        self._thread.start()

    @property
    def killed(self) -> bool:
        """Whether the kill at the job's crash point has happened."""
        return bool(self._job.kill_marker) and faults.has_killed(Path(self._job.kill_marker))

    def wait_for_kill(self, journal: Journal) -> None:
        """Wait until the kill has happened and the killed process has been replaced. After KILL_WITHIN_SECONDS the kill
        is cancelled.
        """
        until = time.monotonic() + KILL_WITHIN_SECONDS
        journal.wait_for("the kill", lambda: self.killed or time.monotonic() > until)
        if faults.cancel_kill(Path(self._job.kill_marker)):
            return
        if self._job.target == "agent":
            journal.wait_for("the end of the killed agent", lambda: self.exits)
        else:
            journal.wait_for("the restart of the server", lambda: self._server_restarted)

    def stop(self) -> int:
        """Send SIGTERM to the current agent; return its exit status."""
        self._stopping.set()
        self._thread.join()
        os.kill(self._agent.pid, signal.SIGTERM)
        if not self._agent.ended.wait(HANG_SECONDS):
            os.kill(self._agent.pid, signal.SIGUSR1)
            self._agent.ended.wait(1)
            raise AssertionError("the agent does not end; its log has the stacks of its threads")
        assert self._agent.status is not None
        return self._agent.status

    def kill(self) -> None:
        """Send SIGKILL to the current agent if it is still running."""
        self._stopping.set()
        self._thread.join()
        if not self._agent.ended.is_set():
            os.kill(self._agent.pid, signal.SIGKILL)
            assert self._agent.ended.wait(HANG_SECONDS), "the agent survives SIGKILL"

    def _run(self) -> None:
        server_killed = False
        while not self._stopping.is_set():
            if self._agent.ended.wait(0.02):
                assert self._agent.status is not None
                self.exits.append(self._agent.status)
                self._agent = self._farm.start(msgspec.structs.replace(self._job, point=None, recording=""))
            if self._job.target == "redis" and not server_killed and self._server_is_dead():
                server_killed = True
                self._server.kill9()  # the server is already dead: this updates the object's state
                self._server.start()
                self._server_restarted = True

    def _server_is_dead(self) -> bool:
        return self.killed and scratch.start_time(self._server.pid) is None
