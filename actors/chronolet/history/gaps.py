"""Reads a log that has gaps: what can be read, and where something is missing. Pure.

Input: a function that yields the entries after a position, and raises HistoryMissing at a gap. Output: the entries, and
a `Gap` in place of what is missing. Next: `cli.history.why`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from chronolet.kernel.storage.store import HistoryMissing
from chronolet_schemas.envelope import START, Entry, Position


class Gap(NamedTuple):
    """Entries that cannot be read. `after`: the last entry before them. `text`: why."""

    after: Position
    text: str


def available(read: Callable[[Position], Iterator[Entry]], trimmed: Callable[[], Position]) -> Iterator[Entry | Gap]:
    """Yield the entries that can be read, oldest first, and the gaps between them. `trimmed` returns the position after
    which the stream has all entries.

    Raises HistoryMissing if reading again after a gap would lead nowhere.
    """
    began = reached = START
    while True:
        try:
            for entry in read(began):
                reached = entry.position
                yield entry
        except HistoryMissing as missing:
            reached = max(reached, missing.reached or START)
            yield Gap(reached, str(missing))
            began = _resumed(max(began, reached), missing, trimmed())
        else:
            return


def _resumed(reached: Position, missing: HistoryMissing, trimmed: Position) -> Position:
    """Return the end of a gap. Raises `missing` if that is not after what was reached."""
    resume = missing.resume or trimmed
    if resume <= reached:
        resume = trimmed
    if resume <= reached:
        raise missing
    return resume
