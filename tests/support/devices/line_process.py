"""A process whose output lines are collected while it runs.

Input: a command. Output: the lines so far, and waits for certain lines. Next: `sample_plugin`, `old_plugin`.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support import scratch
from tests.support.scratch import HANG_SECONDS


class LineProcess:
    """One process. `lines` contains its output so far, including standard error."""

    def __init__(
        self, command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def count(self, text: str) -> int:
        """Return the number of lines that contain the text."""
        return sum(text in line for line in self.lines)

    def wait_for(self, text: str, times: int = 1) -> str:
        """Wait until `times` lines contain the text; return the last of them."""
        scratch.wait_until(lambda: self.count(text) >= times, f"{times} x {text!r}; its output: {self.lines}")
        return [line for line in self.lines if text in line][-1]

    def end(self) -> int:
        """Wait until the process ends by itself; return its exit status."""
        status = self.process.wait(HANG_SECONDS)
        self._reader.join(HANG_SECONDS)
        return status

    def kill(self) -> None:
        """Send SIGKILL to the process and wait for its exit."""
        self.process.kill()
        self.process.wait()
        self._reader.join(HANG_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
