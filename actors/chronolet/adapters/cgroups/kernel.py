"""The few file operations that the cgroup code performs; the fake overrides them.

Input: paths. Output: text, names. Next: `tree`. Text is returned without its trailing newlines.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

_LONGEST = 1 << 16


class Kernel(Protocol):
    """Operations on cgroup files. They raise the kernel's OSError."""

    def read(self, path: str) -> str | None:
        """Return a file's content; None if it does not exist."""

    def write(self, path: str, text: str) -> None:
        """Write a value with a single system call, which the kernel accepts or rejects as a whole."""

    def make(self, path: str) -> None:
        """Create a cgroup if it does not exist."""

    def remove(self, path: str) -> None:
        """Remove a cgroup that has neither processes nor children."""

    def is_folder(self, path: str) -> bool:
        """Whether the cgroup exists."""

    def folders(self, path: str) -> Sequence[str]:
        """Return the names of the child cgroups; empty if the path does not exist."""

    def names(self, path: str) -> Sequence[str]:
        """Return all names in a folder; empty if it does not exist."""


class LinuxKernel:
    """Implements `Kernel` on the real cgroup files."""

    def read(self, path: str) -> str | None:
        # Avoids the built-in `open` for speed, since many small files are read in a row.
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            text = os.read(file, _LONGEST)
            while len(text) % _LONGEST == 0 and (more := os.read(file, _LONGEST)):
                text += more
            return text.decode().rstrip("\n")
        except OSError:
            return None  # the cgroup was removed while being read
        finally:
            os.close(file)

    def write(self, path: str, text: str) -> None:
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)

    def make(self, path: str) -> None:
        try:
            Path(path).mkdir(0o755)
        except FileExistsError:
            return

    def remove(self, path: str) -> None:
        Path(path).rmdir()

    def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()

    def folders(self, path: str) -> Sequence[str]:
        try:
            with os.scandir(path) as found:
                return [one.name for one in found if one.is_dir(follow_symlinks=False)]
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def names(self, path: str) -> Sequence[str]:
        try:
            return sorted(one.name for one in Path(path).iterdir())
        except FileNotFoundError:
            return ()
