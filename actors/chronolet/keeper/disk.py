"""How the disk below the agent's own Redis stands, from the guard's thread to the keeper's worker.

Comes in: the last thing that the guard had to say. Goes out: the same, to whoever asks, as often as it asks: a keeper
that takes over or starts again hears it too, and the decider knows what it has put into the log already. Next:
`effects`.
"""

from __future__ import annotations

import threading

from chronolet.keeper.signals import BallastBack, BallastGone

News = BallastGone | BallastBack


class Disk:
    """Holds the newest news."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0
        self._news: News | None = None

    def tell(self, news: News) -> None:
        """From now on this is how it stands."""
        with self._changed:
            self._number += 1
            self._news = news
            self._changed.notify_all()

    def news(self, after: int, timeout_seconds: float) -> tuple[int, News | None]:
        """The newest with its number, waited for if its number is `after`; None if nothing came."""
        with self._changed:
            if self._number == after:
                self._changed.wait(timeout_seconds)
            return self._number, self._news if self._number != after else None
