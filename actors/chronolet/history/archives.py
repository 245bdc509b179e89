"""Opens the archive of the log's current run, for reading and writing.

Input: the storage of each run, the node, its store. Output: an `ArchiveReader`, and the archive to write to. Next:
`entries`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chronolet.history.entries import LARGEST_N
from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet.kernel.log.archive_storage import ArchiveStorage
from chronolet.kernel.storage.store import HistoryMissing, Store
from chronolet_schemas.envelope import START, Entry, Position


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

    def entries(self, after: Position, upto: Position) -> Iterator[Entry]:
        """See `ArchiveReader`. Raises HistoryMissing if files are damaged or missing."""
        archive = self.current()
        last = after
        try:
            exact = after
            if after.n == LARGEST_N:
                # `after` is a time, not an entry: start at the last file that ends before it.
                exact = max((part.last for part in archive.files() if part.last <= after), default=START)
            for entry in archive.read(exact, upto):
                if entry.position > after:
                    last = entry.position
                    yield entry
        except (ArchiveDamaged, OSError) as damaged:
            raise HistoryMissing(str(damaged), _resume(archive, last)) from damaged

    def numbered(self, number: int) -> Entry | None:
        """See `ArchiveReader`. Raises HistoryMissing if the entry's file is damaged."""
        archive = self.current()
        try:
            names = [part.name for part in archive.files() if part.first.n <= number <= part.last.n]
            found = (entry for name in names for entry in archive.entries_of(name) if entry.position.n == number)
            return next(found, None)
        except (ArchiveDamaged, OSError) as damaged:
            raise HistoryMissing(str(damaged)) from damaged


def _resume(archive: Archive, last: Position) -> Position | None:
    """Return from where on the entries after `last` can be read again: the end of the damaged file that has the next
    one, or the beginning of the next file if that one is missing. None if the files cannot be listed, or none follows.
    """
    try:
        following = min((part for part in archive.files() if part.last > last), key=lambda one: one.last, default=None)
    except (ArchiveDamaged, OSError):
        return None
    if following is None:
        return None
    missing = following.first.n > last.n + 1
    return Position(following.first.milliseconds, following.first.n - 1) if missing else following.last
