"""Archive files in a folder, with a folder below it for each run.

Input: the folder, the run. Output: an `ArchiveStorage`. The first write creates the folders, with mode 0700; files have
mode 0600. A file is written under another name and renamed when its content is on disk. Next: `kernel.log.archive`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO

_SOME = 5


class FolderStorage:
    """The files of one run. `writer` distinguishes the temporary files of two programs that write at the same time."""

    def __init__(self, base: Path, run: str, writer: str = "keeper") -> None:
        self._base = base
        self._folder = base / run
        self._writer = writer

    def names(self) -> Sequence[str]:
        """See `ArchiveStorage`. A folder that does not exist has no files; any other error is raised."""
        try:
            return [path.name for path in self._folder.iterdir() if path.suffix != ".new"]
        except FileNotFoundError:
            return []

    def stamps(self) -> Mapping[str, str]:
        """See `ArchiveStorage`. A file that is removed meanwhile is left out."""
        found = {}
        for name in self.names():
            with suppress(FileNotFoundError):
                state = (self._folder / name).stat()
                found[name] = f"{state.st_size}-{state.st_mtime_ns}-{state.st_ino}"
        return found

    def opened(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """See `ArchiveStorage`."""
        return (self._folder / name).open("rb")

    def part(self, name: str, offset: int, size: int) -> bytes:
        """See `ArchiveStorage`."""
        with (self._folder / name).open("rb", buffering=0) as file:
            rest = os.fstat(file.fileno()).st_size - offset
            if rest <= 0:
                return b""
            file.seek(offset)
            return file.read(min(size, rest))

    def put(self, name: str, content: bytes) -> None:
        """See `ArchiveStorage`. The file and its name are synced to disk on return."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._folder / f"{name}.{self._writer}.new"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self._folder / name)
        # Syncs the name itself, and the names of folders that were just created.
        for folder in (self._folder, self._base, self._base.parent):
            _sync(folder)

    def set_aside(self, name: str) -> None:
        """See `ArchiveStorage`."""
        path = self._folder / name
        path.rename(path.with_name(f"{name}.damaged"))
        _sync(self._folder)

    def delete(self, name: str) -> None:
        """See `ArchiveStorage`. The file stays deleted after a crash of the machine."""
        (self._folder / name).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):  # there is no folder of this run either
            _sync(self._folder)

    def place(self, name: str = "") -> str:
        """See `ArchiveStorage`."""
        return str(self._folder / name) if name else str(self._folder)

    def other_runs(self) -> Sequence[str]:
        """See `ArchiveStorage`."""
        try:
            found = sorted(path.name for path in self._base.iterdir() if path.is_dir() and path != self._folder)
        except FileNotFoundError:
            return []
        return found[:_SOME]


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
