"""Reports the state of the process to systemd: ready, phase, alive, stopping.

Input: the environment of a unit with `Type=notify`, and the running process. Output: datagrams to the service manager;
nothing if no service manager started the process. Next: `deploy/systemd/chronolet.service`.

    (start) -> READY=1, once the process hosts shards or stands by -> STOPPING=1
    meanwhile: STATUS=<phase> after each change, WATCHDOG=1 while the process's own threads run

The watchdog judges this process only. WATCHDOG=1 is sent even if Redis or Docker does not answer, because a restart
would not help. Source: sd_notify(3), sd_watchdog_enabled(3).
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Collection, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Protocol

import structlog
from msgspec import Struct

READY_PHASES = frozenset({"running", "standing by"})
WAITING_PHASES = frozenset({"checking", "leasing"})
"""Phases in which the process waits for its server. The unit's own start time-out applies to these phases alone; later
phases extend it, because reading a long log may take any amount of time.
"""
LOOK_SECONDS = 1.0
"""Longest interval between two checks of the process."""
WATCHDOG_PARTS = 4
"""How many times the process reports itself alive per watchdog period."""
EXTENSION_SECONDS = 60.0
STALL_SECONDS = 60.0
"""A thread that has not run for this long is stuck. Far longer than the longest time-out of a lease renewal."""

log = structlog.get_logger("chronolet.node")


class Reported(Protocol):
    """The process, as the service manager sees it."""

    @property
    def phase(self) -> str:
        """The current phase, such as `running` or `leasing`."""

    def stalled_threads(self, seconds: float) -> Collection[str]:
        """Return the names of the process's own threads that have not run for this many seconds."""


class ServiceManager(Struct, frozen=True):
    """Where the service manager listens, and how often it expects a sign of life."""

    address: str
    """Path of a datagram socket; abstract if it begins with @."""
    watchdog_seconds: float = 0.0
    """0 means no watchdog."""

    def send(self, *assignments: str) -> None:
        """Send the assignments in one datagram. Errors are ignored: the service manager may be gone."""
        name = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.connect(name)
            channel.sendall("\n".join(assignments).encode())


def taken_from(environ: MutableMapping[str, str], pid: int) -> ServiceManager | None:
    """Return the service manager that the environment names; None if there is none. Removes its variables from
    `environ`, so that no child process, such as redis-server, reports in this process's name.
    """
    address = environ.pop("NOTIFY_SOCKET", "")
    period, watched = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
    if not address.startswith(("/", "@")):
        return None
    watches = period.isascii() and period.isdigit() and watched in ("", str(pid))
    return ServiceManager(address, int(period) / 1e6 if watches else 0.0)


@contextmanager
def reporting(process: Reported, manager: ServiceManager | None) -> Iterator[None]:
    """Report the process's state during the block, and when the block ends, that the process is stopping."""
    if manager is None:
        yield
        return
    reporter = _Reporter(process, manager)
    reporter.start()
    try:
        yield
    finally:
        reporter.stop()
        manager.send("STOPPING=1", "STATUS=stopping")


class _Reporter:
    """Checks the process at intervals, and reports it, on its own thread."""

    def __init__(self, process: Reported, manager: ServiceManager) -> None:
        self._process = process
        self._manager = manager
        self._reported = ""
        self._ready = False
        self._sign_at = 0.0
        """When the next sign of life is due, on the monotonic clock."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="service manager", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        watchdog = self._manager.watchdog_seconds
        pause = min(LOOK_SECONDS, watchdog / WATCHDOG_PARTS) if watchdog else LOOK_SECONDS
        while True:
            if news := self._news():
                self._manager.send(*news)
            if self._stopping.wait(pause):
                return

    def _news(self) -> list[str]:
        stalled = ", ".join(self._process.stalled_threads(STALL_SECONDS))
        news = [*self._status(f"stuck: {stalled}" if stalled else self._process.phase), *self._start(bool(stalled))]
        watchdog, now = self._manager.watchdog_seconds, time.monotonic()
        if watchdog and not stalled and now >= self._sign_at:
            self._sign_at = now + watchdog / WATCHDOG_PARTS
            news.append("WATCHDOG=1")
        return news

    def _status(self, status: str) -> list[str]:
        if status == self._reported:
            return []
        if status.startswith("stuck"):
            # Explains the restart in the log: the watchdog, if there is one, ends a stuck process.
            log.error("threads of this process do not run", status=status)
        self._reported = status
        return [f"STATUS={status}"]

    def _start(self, stalled: bool) -> list[str]:
        """Return READY=1 once, when the process is ready; before that, an extension of the start time-out if needed."""
        phase = self._process.phase
        if self._ready:
            return []
        if phase in READY_PHASES:
            self._ready = True
            return ["READY=1"]
        extends = phase not in WAITING_PHASES and not stalled
        return [f"EXTEND_TIMEOUT_USEC={round(EXTENSION_SECONDS * 1e6)}"] if extends else []
