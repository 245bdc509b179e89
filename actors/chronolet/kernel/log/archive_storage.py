"""The port through which archive files are stored: a folder or a bucket, one instance for each run of a log.

Input: file names and contents. Output: the same, read back. Next: `archive`, which gives files their format;
`adapters.archive`, which implements the port.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol


class Readable(Protocol):
    """An open file."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; nothing at the end of the file."""


class ArchiveStorage(Protocol):
    """The files of one run. If a method fails, it raises OSError with a text that names the storage or the file."""

    def names(self) -> Sequence[str]:
        """Return the names of all complete files, in any order; nothing if the storage has none of this run."""

    def stamps(self) -> Mapping[str, str]:
        """Return the names of all complete files, each with a text that changes when the file is written anew."""

    def opened(self, name: str) -> AbstractContextManager[Readable]:
        """Open a file for reading."""

    def part(self, name: str, offset: int, size: int) -> bytes:
        """Return `size` bytes of a file from an offset on. If the file ends before, return fewer, or raise OSError."""

    def put(self, name: str, content: bytes) -> None:
        """Store a file durably. Readers see the former content, or none, until the new one is complete."""

    def set_aside(self, name: str) -> None:
        """Rename a file to `<name>.damaged`, replacing an earlier file of that name."""

    def delete(self, name: str) -> None:
        """Delete a file. Nothing happens if there is none."""

    def place(self, name: str = "") -> str:
        """Return the path or URL of a file, or of all files of this run, for messages."""

    def other_runs(self) -> Sequence[str]:
        """Return the other runs whose files the storage holds, at most a few of them, for messages."""
