"""Opens the archive of the log's current run, for reading and writing.

Input: the state folder, the node, its store. Output: an `ArchiveReader`, and the archive to write to. Next: `entries`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chronolet.history.entries import LARGEST_N
from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet.kernel.storage.store import HistoryMissing, Store
from chronolet_schemas.envelope import START, Entry, Position


class NodeArchive:
    """The archives below the state folder, one for each run."""

    def __init__(self, state_folder: Path, node: str, store: Store) -> None:
        self._state_folder = state_folder
        self._node = node
        self._store = store

    def current(self) -> Archive:
        """Return the archive of the log's current run."""
        return Archive(self._state_folder, self._node, self._store.run())

    def entries(self, after: Position, upto: Position) -> Iterator[Entry]:
        """See `ArchiveReader`. Raises HistoryMissing if files are damaged or missing."""
        archive = self.current()
        exact = after
        if after.n == LARGEST_N:
            # `after` is a time, not an entry: start at the last file that ends before it.
            exact = max((last for _, last, _ in archive.files() if last <= after), default=START)
        try:
            yield from (entry for entry in archive.read(exact, upto) if entry.position > after)
        except (ArchiveDamaged, OSError) as damaged:
            raise HistoryMissing(str(damaged)) from damaged
