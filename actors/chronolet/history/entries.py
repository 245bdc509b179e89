"""Reads the complete log of the node from the stream and the archive.

Input: a store, and a reader of archive files. Output: entries in order of position, without gaps or duplicates. Next:
`state`, `kube_events` and the CLI's `log`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.kernel.storage.store import HistoryMissing, Store
from chronolet_schemas.envelope import START, Entry, Position

if TYPE_CHECKING:  # most commands read no checkpoint
    from chronolet.history.derived.checkpoint import Checkpoint, Version

PAGE = 2_000
LONG_ENTRIES = 2_000
"""The number of entries that the stream returns about as fast as the archive finds those that are wanted."""
FIRST_N = 1
"""The number of a log's first entry."""
LARGEST_N = 2**53
"""A number that is greater than that of any entry."""


class Late(NamedTuple):
    """The last entry until a time among those with later positions (docs/adr/0042)."""

    position: Position | None = None
    """Its position; None if none was found."""
    unsearched: tuple[str, ...] = ()
    """The archive files, newest first, that were not searched or not searched to their end."""


class ArchiveReader(Protocol):
    """Reads the archived entries of the log's run."""

    def entries(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> Iterator[Entry]:
        """Yield the entries after `after`, up to and including `upto`, oldest first. Entries that are not wanted may be
        left out, except the last one up to `upto`; then no entry is missing in between.
        """

    def numbered(self, number: int) -> Entry | None:
        """Return the entry with this number; None if it is not in the archive."""

    def last_until(self, milliseconds: int, after: Position, upto: Position) -> Late:
        """Find the last entry after `after`, up to `upto`, that was written at or before a time, although its position
        is later. `after` is the position of an entry.
        """

    def checkpoints(self, upto: Position, kinds: Mapping[str, Version]) -> Mapping[str, Checkpoint]:
        """Return the newest checkpoint up to a position that has a kind's states, for each kind that has one."""


class NoArchive:
    """An empty archive, for readers without archive files."""

    def entries(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> Iterator[Entry]:  # noqa: ARG002
        """Yield nothing."""
        return iter(())

    def numbered(self, number: int) -> Entry | None:  # noqa: ARG002
        """Return None."""
        return None

    def last_until(self, milliseconds: int, after: Position, upto: Position) -> Late:  # noqa: ARG002
        """Find nothing."""
        return Late()

    def checkpoints(self, upto: Position, kinds: Mapping[str, Version]) -> Mapping[str, Checkpoint]:  # noqa: ARG002
        """Return none."""
        return {}


def entries(
    store: Store,
    archive: ArchiveReader,
    after: Position = START,
    upto: Position | None = None,
    wanted: Wanted = EVERYTHING,
    *,
    prefer_archive: bool = False,
) -> Iterator[Entry]:
    """Yield the entries after `after`, up to and including `upto`, or up to the newest one at the time of reading.
    Archived entries that are not wanted may be left out, except the last one.

    The archive is used for entries that the stream no longer has; with `prefer_archive`, also for those of a long range
    that both have, because its indexes lead past what is not wanted. Readers of the whole history set it, such as
    `why`, `log --pod` and `events --all`. A question about the present state, such as `get`, does not: an archive that
    cannot be reached must not delay its answer.

    Raises HistoryMissing if archived entries are needed and not available.
    """
    at, whole = after, upto is not None and after >= upto
    while not whole:
        trimmed = store.archived()[1]
        if trimmed > at:
            goal = trimmed if upto is None else min(trimmed, upto)
            last = yield from _archived(archive, at, goal, wanted)
            found = _reaches if goal == trimmed else _follows
            if not found(store, archive, last, goal):
                raise _missing(last.position, goal)
            at = goal
        if prefer_archive and not wanted.anything:
            at = yield from _in_both(store, archive, at, upto, wanted)
        if upto is not None and at >= upto:
            return
        whole = True
        for entry in store.scan(at, upto):
            if entry.position.n != at.n + 1 and store.archived()[1] > at:
                whole = False  # entries were trimmed during the scan; they are in the archive now
                break
            yield entry
            at = entry.position


class _Last(NamedTuple):
    """The last archived entry that was read. `numbered`: whether the next one must have the next number; not so after a
    time, or an entry of another program, whose number is arbitrary.
    """

    position: Position
    numbered: bool


def _archived(archive: ArchiveReader, after: Position, upto: Position, wanted: Wanted) -> Generator[Entry, None, _Last]:
    """Yield the archived entries and return the last one.

    Raises HistoryMissing for a gap in `n`, unless some entries are left out: then the archive has looked for gaps.
    """
    last = _Last(after, after.n != LARGEST_N)
    for entry in archive.entries(after, upto, wanted):
        whole = wanted.anything and last.numbered and entry.type
        if whole and entry.position.n != last.position.n + 1:
            raise _missing(last.position, entry.position, entry.position._replace(n=entry.position.n - 1))
        # A foreign entry, written by another program, has an arbitrary number and no type.
        last = _Last(entry.position, bool(entry.type))
        yield entry
    return last


def _in_both(
    store: Store, archive: ArchiveReader, after: Position, upto: Position | None, wanted: Wanted
) -> Generator[Entry, None, Position]:
    """Yield entries that stream and archive both have from the archive, which can leave out those that are not wanted.
    Return the position up to which no wanted entry is left out.
    """
    archived = store.archived()[0]
    goal = archived if upto is None else min(archived, upto)
    try:
        for entry in archive.entries(after, goal, wanted) if _is_long(store, after, goal) else ():
            yield entry
            after = entry.position
    except HistoryMissing:
        pass  # the archive is damaged or incomplete there: the stream has the rest
    return after


def _is_long(store: Store, after: Position, upto: Position) -> bool:
    """Return whether the stream has so many entries of this range that it pays to look into the archive's indexes."""
    following = store.read_log(after, 1) if upto > after else ()
    return bool(following) and upto.n - following[0].position.n >= LONG_ENTRIES


def _reaches(store: Store, archive: ArchiveReader, last: _Last, trimmed: Position) -> bool:
    """Return whether the archived part, which ended with `last`, reaches the trim position.

    `trimmed` has the number of the last trimmed entry, but possibly a later time.
    """
    if last.position.n == trimmed.n:
        return True
    if last.position.n != LARGEST_N and not last.numbered:
        return True  # a foreign entry: nothing tells whether others followed
    if last.position.n == LARGEST_N:  # no archived entry follows the requested time: check that there is an archive
        return next(archive.entries(START, trimmed), None) is not None
    following = store.read_log(trimmed, 1)
    return bool(following) and not following[0].type  # a foreign entry, whose number is arbitrary


def _follows(store: Store, archive: ArchiveReader, last: _Last, upto: Position) -> bool:
    """Return whether the archived part up to `upto`, which ended with `last`, is followed by the next entry: otherwise,
    its end is missing.
    """
    trimmed = store.archived()[1]
    following = next(archive.entries(upto, trimmed), None)
    if following is None:
        return _reaches(store, archive, last, trimmed)
    return not (last.numbered and following.type) or following.position.n == last.position.n + 1


def _missing(after: Position, upto: Position, resume: Position | None = None) -> HistoryMissing:
    return HistoryMissing(
        f"the log's entries after {after} up to {upto} were archived, and the archive files are not here: "
        "run the command on the node, or pass its --root-dir",
        resume,
        after,
    )


def before(milliseconds: int) -> Position:
    """Return a position after which every entry is from `milliseconds` or later."""
    return Position(milliseconds - 1, LARGEST_N) if milliseconds > 0 else START


def position_before_last(store: Store, count: int) -> Position:
    """Return a position after which the stream has `count` entries, or all entries if it has fewer.

    The stream cannot be counted from its end, but `n` has no gaps, so the first requested entry is found by bisection.
    """
    last = store.last()
    wanted = last.n - count
    if wanted <= 0:
        return START
    low, high = 0, last.milliseconds
    while low < high:
        middle = (low + high) // 2
        # Is the first entry after `middle` one of those requested?
        found = store.read_log(Position(middle, LARGEST_N), 1)
        if found and found[0].position.n <= wanted + 1:
            low = middle + 1
        else:
            high = middle
    return _within(store, low, wanted)


def _within(store: Store, milliseconds: int, wanted: int) -> Position:
    """Return the position whose number is `wanted`, searching from the given millisecond on."""
    at = before(milliseconds)
    while page := store.read_log(at, PAGE):
        for entry in page:
            if entry.position.n >= wanted:
                return entry.position if entry.position.n == wanted else at
            at = entry.position
    return at
