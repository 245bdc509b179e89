"""State of the disk reserve, passed from the disk guard's thread to the keeper's worker.

Input: the guard's latest report. Output: the same report, to any caller and as often as it asks. So a keeper that takes
over or restarts receives it too; the decider ignores what the log already has. Next: `effects`.
"""

from __future__ import annotations

import threading

from chronolet.keeper.signals import BallastBack, BallastGone

News = BallastGone | BallastBack


class Disk:
    """Holds the latest report."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0
        self._news: News | None = None

    def tell(self, news: News) -> None:
        """Publish a report; it replaces the one before."""
        with self._changed:
            self._number += 1
            self._news = news
            self._changed.notify_all()

    def news(self, after: int, timeout_seconds: float) -> tuple[int, News | None]:
        """Return the latest report and its number; wait while its number is `after`, and return None on time-out."""
        with self._changed:
            if self._number == after:
                self._changed.wait(timeout_seconds)
            return self._number, self._news if self._number != after else None
