"""Watches which processes listen on the sockets of a node, each of which is in a folder of its own.

Input: the folder above. Output: `SocketWatch`, with each moment at which two processes held one socket. A process that
is stopped cannot close its sockets, so it is excused until shortly after it was continued.

A process binds a socket under a temporary name, which the kernel keeps showing after the socket got its final name.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.scratch import PATIENCE

_LISTENS = "00010000"
_TEMPORARY = re.compile(r"(.*)/\.new-\d+")
_PAUSE_SECONDS = 0.05
_EXCUSED_SECONDS = 1.0 * PATIENCE
"""How long a process that was continued may take to close its sockets: a second on an idle machine."""


class SocketWatch:
    """Reads the kernel's table of unix sockets twenty times a second, until it is closed."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self.doubled: list[str] = []
        """What was wrong: each socket that two live processes listened on at one time."""
        self.owners: dict[str, set[int]] = {}
        """The inodes that were seen in each folder: one for each time that a process opened the socket."""
        self._excused: Counter[int] = Counter()
        self._error: BaseException | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="socket watch", daemon=True)
        self._thread.start()

    @contextmanager
    def excused(self, pid: int) -> Iterator[None]:
        """Accept during the block, and shortly after it, that this process keeps its sockets."""
        self._excused[pid] += 1
        try:
            yield
        finally:
            threading.Timer(_EXCUSED_SECONDS, self._excused.subtract, ([pid],)).start()

    def check(self, *, owners: int) -> None:
        """Check that no socket was held twice, and that each was opened at least `owners` times."""
        if self._error is not None:
            raise self._error
        assert not self.doubled, self.doubled
        assert self.owners, f"nothing listens below {self._folder}"
        assert all(len(inodes) >= owners for inodes in self.owners.values()), self.owners

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closed.wait(_PAUSE_SECONDS):
                self._look()
        except BaseException as error:  # noqa: BLE001 - raised by `check`
            self._error = error

    def _look(self) -> None:
        # The kernel's table is not read at once: what it shows twice in a row was there between both readings.
        found, again = self._listening(), self._listening()
        for folder, inodes in found.items():
            self.owners.setdefault(folder, set()).update(inodes)
            both = [inode for inode in inodes if inode in again.get(folder, ())]
            if len(both) > 1:
                excused = self._held_by({pid for pid, times in self._excused.items() if times > 0})
                held = [inode for inode in both if inode not in excused]
                if len(held) > 1:
                    self.doubled.append(f"{folder}: {held} at {time.clock_gettime(time.CLOCK_BOOTTIME):.2f}")

    def _listening(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for line in Path("/proc/net/unix").read_text().splitlines():
            fields = line.split()
            if len(fields) == 8 and fields[3] == _LISTENS and fields[7].startswith(self._folder):
                match = _TEMPORARY.fullmatch(fields[7])
                if match is not None:
                    found.setdefault(match[1], []).append(int(fields[6]))
        return found

    def _held_by(self, pids: set[int]) -> set[int]:
        return {inode for pid in tuple(pids) for inode in _sockets_of(pid)}


def _sockets_of(pid: int) -> Iterator[int]:
    with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if match := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink())):
                    yield int(match[1])
