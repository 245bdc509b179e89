"""Opens the archive of the log's current run, for reading and writing.

Input: the storage of each run, the node, its store. Output: an `ArchiveReader`, and the archive to write to. Next:
`entries`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from chronolet.history.derived.checkpoint import Checkpoint, Version
from chronolet.history.derived.reading import IndexedArchive
from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.history.entries import LARGEST_N, Late
from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet.kernel.log.archive_storage import ArchiveStorage
from chronolet.kernel.storage.store import HistoryMissing, Store
from chronolet_schemas.envelope import Entry, Position


class NodeArchive:
    """The archives of a node, one for each run. `storage` returns the files of a run."""

    def __init__(self, storage: Callable[[str], ArchiveStorage], node: str, store: Store) -> None:
        self._storage = storage
        self._node = node
        self._store = store

    def current(self) -> Archive:
        """Return the archive of the log's current run."""
        run = self._store.run()
        return Archive(self._storage(run), self._node, run)

    def entries(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> Iterator[Entry]:
        """See `ArchiveReader`. Raises HistoryMissing if files are damaged or missing."""
        archive = self._indexed()
        try:
            exact = after
            if after.n == LARGEST_N:
                exact = archive.last_before(after)  # `after` is a time, not an entry
            yield from (entry for entry in archive.entries(exact, upto, wanted) if entry.position > after)
        except (ArchiveDamaged, OSError) as damaged:
            resume = _resume(archive.archive, archive.reached)
            raise HistoryMissing(str(damaged), resume, archive.reached) from damaged

    def numbered(self, number: int) -> Entry | None:
        """See `ArchiveReader`. Raises HistoryMissing if the entry's file is damaged."""
        with _missing():
            return self._indexed().numbered(number)

    def last_until(self, milliseconds: int, after: Position, upto: Position) -> Late:
        """See `ArchiveReader`. Raises HistoryMissing if a file that must be read is damaged."""
        with _missing():
            return self._indexed().last_until(milliseconds, after, upto)

    def checkpoints(self, upto: Position, kinds: Mapping[str, Version]) -> Mapping[str, Checkpoint]:
        """See `ArchiveReader`. Raises HistoryMissing if the archive cannot be listed."""
        with _missing():
            return self._indexed().stored.newest(upto, kinds)

    def _indexed(self) -> IndexedArchive:
        return IndexedArchive(self.current())


@contextmanager
def _missing() -> Iterator[None]:
    """Translate what can be wrong with an archive into HistoryMissing."""
    try:
        yield
    except (ArchiveDamaged, OSError) as damaged:
        raise HistoryMissing(str(damaged)) from damaged


def _resume(archive: Archive, last: Position) -> Position | None:
    """Return from where on the entries after `last` can be read again: the end of the damaged file that has the next
    one, or the beginning of the next file if that one is missing. None if the files cannot be listed, or none follows.
    """
    try:
        following = next((part for part in archive.needed() if part.last > last), None)
    except (ArchiveDamaged, OSError):
        return None
    if following is None:
        return None
    missing = following.first.n > last.n + 1
    return Position(following.first.milliseconds, following.first.n - 1) if missing else following.last
