"""The few things that are done to files of the kernel; what a fake does otherwise.

Comes in: paths. Goes out: text, names. Next: `tree`. Text is without its last line's end.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

_LONGEST = 1 << 16


class Kernel(Protocol):
    """OSError as the kernel says it."""

    def read(self, path: str) -> str | None:
        """What a file says; None if it is not there."""

    def write(self, path: str, text: str) -> None:
        """One write, which the kernel takes or refuses as a whole."""

    def make(self, path: str) -> None:
        """A cgroup; one that is there is fine."""

    def remove(self, path: str) -> None:
        """A cgroup without anybody in it and none beneath it."""

    def is_folder(self, path: str) -> bool:
        """Whether there is such a cgroup."""

    def folders(self, path: str) -> Sequence[str]:
        """The names of what is beneath; none if it is not there."""

    def names(self, path: str) -> Sequence[str]:
        """All names in a folder; none if it is not there."""


class LinuxKernel:
    """The kernel itself."""

    def read(self, path: str) -> str | None:
        # Many small files in a row: opened without the layers of `open`.
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
            return None  # the cgroup went while it was read
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
