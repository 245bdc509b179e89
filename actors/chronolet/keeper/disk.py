"""Passes the state of the disk reserve from the disk guard's thread to the keeper's worker.

Input: the guard's latest report. Output: the same report for every caller, so that a keeper that takes over or
restarts also receives it; the decider ignores reports that the log already contains. Next: `effects`.
"""

from __future__ import annotations

import threading

from chronolet.keeper.signals import ReserveReleased, ReserveRestored

Report = ReserveReleased | ReserveRestored


class DiskReports:
    """Holds the latest report."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0
        self._report: Report | None = None

    def publish(self, report: Report) -> None:
        """Publish a report, which replaces the previous one."""
        with self._changed:
            self._number += 1
            self._report = report
            self._changed.notify_all()

    def latest(self, after: int, timeout_seconds: float) -> tuple[int, Report | None]:
        """Return the number of the latest report, and the report. Wait while the number is `after`; after a time-out,
        return `after` and None.
        """
        with self._changed:
            if self._number == after:
                self._changed.wait(timeout_seconds)
            return self._number, self._report if self._number != after else None
