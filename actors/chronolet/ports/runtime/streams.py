"""What stays open between the runtime and those who read it.

Comes in: pieces, as they arrive. Goes out: the same to their reader; anybody may end it. Next: `runtime`, whose calls
give them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Attachment(Protocol):
    """The streams of a running command. `output` is read by one thread, input written by another."""

    def output(self) -> Iterator[tuple[str, bytes]]:
        """Pieces as (`stdout` or `stderr`, bytes) until it ends; a terminal's are all `stdout`."""

    def send(self, data: bytes) -> None:
        """Input for the command; what comes too late is lost."""

    def end_input(self) -> None:
        """The command reads an end of file."""

    def close(self) -> None:
        """Let go of it: a reader wakes, the command goes on."""


class Stream(Protocol):
    """Something open that another thread may end: notices, a pull."""

    def close(self) -> None:
        """End it; who reads it is woken."""
