"""The node's log from its first entry on, whether an entry is still in the stream or in an archive file by now.

Comes in: a store, and a reader of archive files. Goes out: entries in order of position, none left out, none twice.
Next: `state`, `kube_events` and the CLI's `log`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Protocol

import msgspec

from chronolet.kernel.storage.store import HistoryMissing, Store
from chronolet_schemas.envelope import START, Entry, Position

PAGE = 2_000
LARGEST_N = 2**53
"""Above every number that an entry has."""


class ArchiveReader(Protocol):
    """Archived entries of the log's run."""

    def entries(self, after: Position, upto: Position) -> Iterator[Entry]:
        """Entries after a position up to and with another one, oldest first."""


class NoArchive:
    """No archive files are at hand."""

    def entries(self, after: Position, upto: Position) -> Iterator[Entry]:  # noqa: ARG002
        """Nothing."""
        return iter(())


def entries(
    store: Store, archive: ArchiveReader, after: Position = START, upto: Position | None = None
) -> Iterator[Entry]:
    """Entries after a position, up to and with `upto` or the newest there is when the reading gets there."""
    at, whole = after, False
    while not whole:
        trimmed = store.archived()[1]
        if trimmed > at:
            goal = trimmed if upto is None else min(trimmed, upto)
            last = yield from _archived(archive, at, goal)
            if goal == trimmed and not _reaches(store, archive, last, trimmed):
                raise _missing(last, trimmed)
            at = goal
        if upto is not None and at >= upto:
            return
        whole = True
        for entry in store.scan(at, upto):
            if entry.position.n != at.n + 1 and store.archived()[1] > at:
                whole = False  # trimmed under our hands; what is missing is in the archive by now
                break
            yield entry
            at = entry.position


def concerns_pod(entry: Entry, pod: str) -> bool:
    """Whether an entry is about the pod `namespace/name`: its own, or another actor's that names it."""
    if entry.entity == f"pod/{pod}":
        return True
    if pod.encode() not in entry.data:
        return False  # most entries, without looking further
    try:
        data = msgspec.msgpack.decode(entry.data)
    except msgspec.DecodeError:
        return False
    return isinstance(data, dict) and pod in (data.get("pod"), f"{data.get('namespace')}/{data.get('name')}")


def _archived(archive: ArchiveReader, after: Position, upto: Position) -> Generator[Entry, None, Position]:
    """The archive's part, and where it ended. HistoryMissing for a hole in it: `n` has no gaps."""
    at, sure = after, after.n != LARGEST_N
    for entry in archive.entries(after, upto):
        if entry.type and sure and entry.position.n != at.n + 1:
            raise _missing(at, entry.position)
        # What somebody else put into the log has a number of his own choice, and no type.
        at, sure = entry.position, bool(entry.type)
        yield entry
    return at


def _reaches(store: Store, archive: ArchiveReader, last: Position, trimmed: Position) -> bool:
    """Whether the archive's part, which ended with `last`, goes as far as the stream was trimmed.

    `trimmed` bears the number of the last entry that went, but maybe a later time.
    """
    if last.n == trimmed.n:
        return True
    if last.n == LARGEST_N:  # nothing was read from a moment between entries on: is there an archive at all?
        return next(archive.entries(START, trimmed), None) is not None
    following = store.read_log(trimmed, 1)
    return bool(following) and not following[0].type  # somebody else's entry, whose number says nothing


def _missing(after: Position, upto: Position) -> HistoryMissing:
    return HistoryMissing(
        f"the log's entries after {after} up to {upto} were archived, and the archive files are not here: "
        "ask on the node, or give its --root-dir"
    )


def before(milliseconds: int) -> Position:
    """A position after which everything happened at `milliseconds` or later."""
    return Position(milliseconds - 1, LARGEST_N) if milliseconds > 0 else START


def position_before_last(store: Store, count: int) -> Position:
    """A position after which the stream has at most `count` entries, as many of them if it has so many.

    The stream cannot be counted from its end, but `n` has no gaps: bisect by time for the first entry wanted.
    """
    last = store.last()
    wanted = last.n - count
    if wanted <= 0:
        return START
    low, high = 0, last.milliseconds
    while low < high:
        middle = (low + high) // 2
        # Is the first entry later than `middle` already one of those wanted?
        found = store.read_log(Position(middle, LARGEST_N), 1)
        if found and found[0].position.n <= wanted + 1:
            low = middle + 1
        else:
            high = middle
    return _within(store, low, wanted)


def _within(store: Store, milliseconds: int, wanted: int) -> Position:
    """The position with number `wanted`, not before the entries of this millisecond's predecessor."""
    at = before(milliseconds)
    while page := store.read_log(at, PAGE):
        for entry in page:
            if entry.position.n >= wanted:
                return entry.position if entry.position.n == wanted else at
            at = entry.position
    return at
