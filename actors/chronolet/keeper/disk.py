"""Passes the state of the disk reserve from the disk guard's thread to the keeper's worker.

Input: the guard's latest report. Output: the same report for every follower, so that a keeper that takes over or
restarts also receives it; the decider ignores reports that the log already contains. Next: `effects`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from chronolet.keeper.signals import ReserveReleased, ReserveRestored

Report = ReserveReleased | ReserveRestored
Follower = Callable[[Report], None]


class DiskReports:
    """Holds the latest report, and passes each one on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # also held while followers are called: they receive the reports in order
        self._report: Report | None = None
        self._followers: list[Follower] = []

    def publish(self, report: Report) -> None:
        """Publish a report, which replaces the previous one."""
        with self._lock:
            self._report = report
            for follower in self._followers:
                follower(report)

    def follow(self, follower: Follower) -> Callable[[], None]:
        """Call `follower` with the latest report now, if there is one, and with each later report, on the publishing
        thread; it must not block. Returns a function that ends this.
        """
        with self._lock:
            if self._report is not None:
                follower(self._report)
            self._followers.append(follower)
        return partial(self._leave, follower)

    def _leave(self, follower: Follower) -> None:
        with self._lock:
            self._followers.remove(follower)
