"""Long-lived streams between the runtime and its callers. Any thread may close them. Next: `runtime` opens them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Attachment(Protocol):
    """The streams of a running command. One thread reads `output`, another may write the input."""

    def output(self) -> Iterator[tuple[str, bytes]]:
        """Yield chunks as (`stdout` or `stderr`, bytes) until the command ends; with a terminal, all are `stdout`."""

    def send(self, data: bytes) -> None:
        """Write input to the command; input sent after the command has ended is lost."""

    def end_input(self) -> None:
        """Close the command's input, so that it reads end of file."""

    def close(self) -> None:
        """Detach from the command, which continues, and wake the reader."""


class Stream(Protocol):
    """An open stream (of notices, of a pull) that another thread may close."""

    def close(self) -> None:
        """Close the stream and wake its reader."""
