"""The recorded log of a real agent, in the folder `recorded` next to this file.

Input: none. Output: its entries. `python -m tests.bench.history.recording` records another one. Next: `million`, and
the tests of indexes and checkpoints.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.kernel.log.archive import Archive
from chronolet_schemas.envelope import Entry

FOLDER = Path(__file__).parent / "recorded"
NODE = "bench"


@functools.cache
def recorded_entries() -> Sequence[Entry]:
    """Return all entries, oldest first."""
    (run,) = (path.name for path in FOLDER.iterdir())
    return tuple(Archive(FolderStorage(FOLDER, run), NODE, run).read())
