"""The sample device plugin as a process of its own.

Input: options, commands. Output: what it says, its end.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import scratch
from tests.support.scratch import HANG_SECONDS


class SamplePlugin:
    """One process. `said` are its lines so far."""

    def __init__(self, *options: str) -> None:
        self.said: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "chronolet_sample_plugin", *options],
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
            self.said.append(line.rstrip("\n"))

    def do(self, command: str) -> None:
        """A command, done when this returns. One that ends it may end it before it can say so."""
        before = self.count(f"did {command}")
        self.write(command)

        def done() -> bool:
            ended = command == "stop" and self.process.poll() is not None
            return ended or self.count(f"did {command}") > before

        scratch.wait_until(done, f"{command}; it said {self.said}")

    def write(self, line: str) -> None:
        """A line on its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def count(self, words: str) -> int:
        """How many of its lines have these words."""
        return sum(words in line for line in self.said)

    def wait_for(self, words: str, times: int = 1) -> str:
        """The last line with these words, when there are so many."""
        scratch.wait_until(lambda: self.count(words) >= times, f"{times} x {words!r}; it said {self.said}")
        return [line for line in self.said if words in line][-1]

    def end(self) -> int:
        """How it ends by itself."""
        status = self.process.wait(HANG_SECONDS)
        self._reader.join(HANG_SECONDS)
        return status

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()
        self._reader.join(HANG_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def sample_plugin(*options: str, folder: Path) -> Iterator[SamplePlugin]:
    """A plugin in that folder, killed at the end."""
    plugin = SamplePlugin("--folder", str(folder), *options)
    try:
        yield plugin
    finally:
        plugin.kill()
