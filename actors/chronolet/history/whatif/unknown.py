"""What the record does not tell about a change, and the parts for which something was assumed instead. Pure.

Input: what was found while deciding. Output: sentences. Next: `two_runs`.
"""

from __future__ import annotations

from collections.abc import Iterator


class Unknown:
    """Collects what is not known. The counts are those of recorded decisions and entries."""

    def __init__(self) -> None:
        self.assumed: set[str] = set()
        """The parts for which something was assumed that the record lacks."""
        self.unread = 0
        """Number of decisions about parts of the change whose input is not known."""
        self.other_release = 0
        """Number of decisions that the deciders do not make again, even without the change."""
        self.damaged = 0
        """Number of entries that cannot be read."""
        self.failed: list[str] = []
        """The messages that make a decider fail with the change, and how."""

    def sentences(self) -> Iterator[str]:
        """Yield what the record does not tell, each as a sentence without a full stop."""
        if self.unread:
            decisions = _many(self.unread, "decision")
            yield f"what led to {decisions} taken as recorded, of which the log does not have the input"
        if self.other_release:
            decisions = _many(self.other_release, "decision")
            yield (
                f"what would have become with the change of {decisions} not made again as recorded even without it; "
                "see `chronolet replay --verify`"
            )
        if self.damaged:
            entries = _many(self.damaged, "entry", "entries")
            yield f"what the log says in {entries} that cannot be read; see `chronolet replay --verify`"
        if self.failed:
            messages = _many(len(self.failed), "message")
            yield f"what follows from {messages} with the change; the first is {self.failed[0]}"


def _many(count: int, what: str, plural: str = "") -> str:
    return f"1 {what}" if count == 1 else f"{count} {plural or f'{what}s'}"
