"""The process's lease: `alive:<process>`, renewed each second by a thread of its own, also during recovery.

Comes in: a store. Goes out: `valid`, by this machine's own clock since boot, asked before every outside call; and a
file lock in the state folder, by which others on the same machine know at once that this process is dead (DESIGN 3.5).

    valid -> lapsed (not renewed in time: another may have taken over) -> renewed, ownership looked at -> valid
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Container
from pathlib import Path

import structlog

from chronolet.kernel.storage.store import Store, StoreBroken, StoreUnreachable

TTL_MILLISECONDS = 3000
RENEWALS_IN_TTL = 3

log = structlog.get_logger("chronolet.kernel")


def _now() -> float:
    """Seconds that go on while the machine is suspended, unlike those of `time.monotonic`: so do the server's."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """Renews until `stop`. The lease is for progress; only the step's token check is for safety."""

    def __init__(self, store: Store, process: str, info: str, *, ttl_milliseconds: int = TTL_MILLISECONDS) -> None:
        self.process = process
        self._store = store
        self._info = info
        self._ttl = ttl_milliseconds
        self._good_until = 0.0
        self.lapses = 0
        self._confirmed = 0
        self._regained: Callable[[], None] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self, regained: Callable[[], None]) -> None:
        """Take the lease (StoreUnreachable if the server does not answer), then keep it.

        `regained` is called when it was renewed after a lapse: look at who owns the shards now, then `confirm`.
        """
        self._renew()
        self._confirmed = self.lapses
        self._regained = regained
        self._thread.start()

    @property
    def renewal_seconds(self) -> float:
        """How often the lease is renewed."""
        return self._ttl / 1000 / RENEWALS_IN_TTL

    def valid(self) -> bool:
        """Whether this process may act on the world: renewed in time ever since ownership was last looked at."""
        return self._confirmed == self.lapses and _now() < self._good_until

    def answered(self) -> bool:
        """Whether the server has renewed it in time, whoever owns the shards by now."""
        return _now() < self._good_until

    def confirm(self, lapses: int) -> None:
        """After so many `lapses`, the shards that this process still believes its own were seen to be its own."""
        self._confirmed = lapses

    def stop(self) -> None:
        """Renew no more; the lease runs out, or is retired by the caller."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._good_until = 0.0

    def _run(self) -> None:
        failing = False
        while not self._stopping.wait(self.renewal_seconds):
            try:
                self._renew()
            except (StoreUnreachable, StoreBroken) as error:
                if not failing:
                    log.warning("the lease was not renewed", error=str(error))
                failing = True
                continue  # tried again in a moment; until then `valid` runs out by itself
            failing = False
            if self._confirmed != self.lapses and self._regained is not None:
                self._regained()

    def _renew(self) -> None:
        asked = _now()  # before the call: the server may have started counting any time after it
        self._store.renew(self.process, self._info, self._ttl)
        # After it: what was asked for in time may have arrived too late, and somebody have taken over in between.
        self.lapses += _now() >= self._good_until
        self._good_until = asked + self._ttl / 1000


class LifeLock:
    """An exclusive lock on `<folder>/<process>.lock`, held by the operating system for as long as the process lives."""

    def __init__(self, folder: Path, process: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{process}.lock"
        self._file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Give the lock back on a clean stop, and remove its file."""
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def sweep(folder: Path | None, alive: Container[str]) -> None:
    """Remove the lock files of dead processes; not while they still have a lease: it is the proof of their death."""
    for path in folder.glob("*.lock") if folder is not None else ():
        if path.stem not in alive and proven_dead(folder, path.stem):
            path.unlink(missing_ok=True)


def proven_dead(folder: Path | None, process: str) -> bool:
    """Whether `process` ran on this machine and is dead: its lock file is here and nobody holds it."""
    if folder is None or not process:
        return False
    try:
        file = os.open(folder / f"{process}.lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True
