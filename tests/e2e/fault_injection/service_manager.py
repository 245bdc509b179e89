"""The service manager of a life: an agent that has died is started again, and so is its redis-server.

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
from tests.e2e.fault_injection.agent_farm import AgentJob, Farm
from tests.e2e.journal import Journal
from tests.support import scratch
from tests.support.redis import PrivateRedis
from tests.support.scratch import HANG_SECONDS

STRUCK_WITHIN_SECONDS = 15
"""After the rest of a life its blow may still fall, at a last effect; the few that are spared it wait for so long."""


class Keeping:
    """Keeps one agent running."""

    def __init__(self, farm: Farm, server: PrivateRedis, job: AgentJob) -> None:
        self._farm = farm
        self._server = server
        self._job = job
        self.deaths: list[int] = []
        """Exit statuses of the agents that died unasked."""
        self._server_is_back = False
        self._stopping = threading.Event()
        self._agent = farm.start(job)
        self._thread = threading.Thread(target=self._run, name="keeping", daemon=True)
        self._thread.start()

    @property
    def struck(self) -> bool:
        """Whether the blow has fallen."""
        return bool(self._job.struck) and faults.has_fallen(Path(self._job.struck))

    def await_blow(self, journal: Journal) -> None:
        """Until the blow has fallen, and what it has killed is there again. After a while it is called off."""
        until = time.monotonic() + STRUCK_WITHIN_SECONDS
        journal.wait_for("the blow", lambda: self.struck or time.monotonic() > until)
        if faults.spare(Path(self._job.struck)):
            return
        if self._job.victim == "agent":
            journal.wait_for("the agent's death", lambda: self.deaths)
        else:
            journal.wait_for("the server's return", lambda: self._server_is_back)

    def stop(self) -> int:
        """SIGTERM to the agent that runs now, which must have come to run; its exit status."""
        self._stopping.set()
        self._thread.join()
        os.kill(self._agent.pid, signal.SIGTERM)
        if not self._agent.over.wait(HANG_SECONDS):
            os.kill(self._agent.pid, signal.SIGUSR1)
            self._agent.over.wait(1)
            raise AssertionError("the agent does not end; its log says what it is doing")
        assert self._agent.status is not None
        return self._agent.status

    def abandon(self) -> None:
        """kill -9 to whatever still runs."""
        self._stopping.set()
        self._thread.join()
        if not self._agent.over.is_set():
            os.kill(self._agent.pid, signal.SIGKILL)
            self._agent.over.wait(HANG_SECONDS)

    def _run(self) -> None:
        server_killed = False
        while not self._stopping.is_set():
            if self._agent.over.wait(0.02):
                assert self._agent.status is not None
                self.deaths.append(self._agent.status)
                self._agent = self._farm.start(msgspec.structs.replace(self._job, point=None, record=""))
            if self._job.victim == "redis" and not server_killed and self._server_is_dead():
                server_killed = True
                self._server.kill9()  # it is dead: this only takes note
                self._server.start()
                self._server_is_back = True

    def _server_is_dead(self) -> bool:
        return self.struck and scratch.start_time(self._server.pid) is None
