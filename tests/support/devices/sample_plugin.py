"""The sample device plugin in a separate process.

Input: options, commands. Output: the plugin's lines, its exit status.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import scratch
from tests.support.devices.line_process import LineProcess


class SamplePlugin(LineProcess):
    """One sample plugin, which reads commands from its standard input."""

    def __init__(self, *options: str) -> None:
        super().__init__([sys.executable, "-m", "chronolet_sample_plugin", *options])

    def do(self, command: str) -> None:
        """Run a command and wait until it is done. After `stop`, the plugin may exit before it reports that."""
        before = self.count(f"did {command}")
        self.write(command)

        def done() -> bool:
            ended = command == "stop" and self.process.poll() is not None
            return ended or self.count(f"did {command}") > before

        scratch.wait_until(done, f"{command}; its output: {self.lines}")

    def write(self, line: str) -> None:
        """Write a line to the plugin's standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()


@contextmanager
def sample_plugin(*options: str, folder: Path) -> Iterator[SamplePlugin]:
    """Run a plugin in that folder, and kill it at the end."""
    plugin = SamplePlugin("--folder", str(folder), *options)
    try:
        yield plugin
    finally:
        plugin.kill()
