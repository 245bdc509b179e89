"""A real agent's history in an archive with small blocks, with and without indexes.

Input: a folder. Output: `Shelf`: the entries, and their archive. The history is that of `tests/bench/history`.
"""

import functools
import importlib
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.history.derived.checkpoint import KINDS
from chronolet.history.derived.folds import KindFold
from chronolet.history.derived.reading import IndexedArchive
from chronolet.history.derived.upkeep import Outcome, Upkeep
from chronolet.history.derived.wanted import EVERYTHING, Wanted
from chronolet.kernel.kind import Kind
from chronolet.kernel.log import archive as archives
from chronolet.kernel.log.archive import Archive
from chronolet_schemas.envelope import START, Entry, Position
from tests.bench.history.recorded_entries import recorded_entries

NODE, RUN = "n", "run-1"
WEB = "default/web-1"
LARGEST_BODY = 8 * 1024 * 1024
"""What replaces `sealed.LARGEST_BODY`, so that tests are quick."""


@functools.cache
def kinds() -> Sequence[Kind[Any]]:
    return [importlib.import_module(f"chronolet.{name}.actor").kind() for name in KINDS]


def folded(entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """Return the states that result from all these entries, folded one by one."""
    folds = {kind.name: KindFold(kind) for kind in kinds()}
    for entry in entries:
        name, _, key = entry.entity.partition("/")
        if name in folds:
            folds[name].add(key, entry)
    return {name: fold.states for name, fold in folds.items()}


class Shelf:
    """The first entries of the recorded history, in archive files of `file_entries`, with blocks of `block_entries`."""

    def __init__(
        self,
        folder: Path,
        *,
        entries: int = 1_000,
        file_entries: int = 300,
        block_entries: int = 25,
        indexed: bool = True,
    ) -> None:
        self.folder = folder / RUN
        self.archive = Archive(FolderStorage(folder, RUN), NODE, RUN)
        self.entries = recorded_entries()[:entries]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(archives, "BLOCK_ENTRIES", block_entries)
            for begin in range(0, entries, file_entries):
                part = self.entries[begin : begin + file_entries]
                self.archive.write(part, self.entries[begin - 1].position if begin else START)
        self.outcomes = self.upkeep() if indexed else []

    def upkeep(self) -> list[Outcome]:
        """Write what the archive lacks."""
        return list(Upkeep(self.archive, kinds, checkpoint_entries=130).run())

    def reader(self) -> IndexedArchive:
        return IndexedArchive(self.archive)

    def read(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> list[Entry]:
        return list(self.reader().entries(after, upto, wanted))

    def between(self, after: Position, upto: Position, wanted: Wanted = EVERYTHING) -> list[Entry]:
        """Return what must be read: the wanted entries, without any index."""
        return [entry for entry in self.entries if after < entry.position <= upto and wanted.meets(entry)]

    def paths(self, suffix: str) -> list[Path]:
        return sorted(self.folder.glob(f"*{suffix}"))


def rising(entries: Sequence[Entry]) -> bool:
    """Whether the entries are in order, each once."""
    positions = [entry.position for entry in entries]
    return positions == sorted(set(positions))


@functools.cache
def bomb() -> bytes:
    """Return a small zlib stream of more bytes than any reader should decompress."""
    return zlib.compress(bytes(2 * LARGEST_BODY))
