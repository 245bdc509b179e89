"""A server process that tests may pause, kill and restart.

Input: a command. Output: a server that responds, or RuntimeError with the end of its log if it exits. Next:
`docker.engine`, `docker.registry`, `redis.server`.
"""

from __future__ import annotations

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support import scratch


class ServerProcess(ABC):
    """One server process. Its output is appended to `log`."""

    def __init__(self, name: str, log: Path) -> None:
        self._name = name
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The pid of the server, which must be running."""
        return self._running().pid

    @abstractmethod
    def start(self) -> None:
        """Start the server and wait until it responds."""

    @abstractmethod
    def _responds(self) -> bool:
        """Return whether the running server responds."""

    def kill9(self) -> None:
        """Kill the server as an out-of-memory kill would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server in the usual way."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Stop the server if it is running, then start it on the same data."""
        if self._process is not None:
            self.stop()
        self.start()

    def pause(self) -> None:
        """Send SIGSTOP: every call hangs until `resume()`."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _launch(self, command: Sequence[str], *, env: Mapping[str, str] | None = None, seconds: float = 20) -> None:
        """Start the command and wait until it responds. Raises RuntimeError with the end of its log if it exits,
        TimeoutError if it does not respond in time; `seconds` is passed to `wait_until`.
        """
        assert self._process is None, f"{self._name} is running already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        scratch.wait_until(self._started, f"{self._name}'s response; see {self.log}", seconds)

    def _started(self) -> bool:
        if self._running().poll() is not None:
            self._process = None
            raise RuntimeError(f"{self._name} ended: " + " | ".join(self.log.read_text().splitlines()[-8:]))
        return self._responds()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, f"{self._name} is not running"
        return self._process

    def _end(self, number: signal.Signals) -> None:
        process = self._running()
        process.send_signal(number)
        process.wait()  # reaps it: dockerd refuses to start while its former pid exists, even as a zombie
        self._process = None
