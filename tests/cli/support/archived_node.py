"""Moves the log of a hand-written node into a real archive.

Input: a node, a folder. Output: archive files, with or without indexes; the stream keeps the newest entry only.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.cli.services import pure_kinds
from chronolet.history.archives import NodeArchive
from chronolet.history.derived.checkpoint import KINDS
from chronolet.history.derived.upkeep import Upkeep
from chronolet.kernel.log import archive as archives
from chronolet_schemas.envelope import START
from tests.cli.support.written_node import NODE, WrittenNode

BLOCK_ENTRIES = 2


def archive_log(
    node: WrittenNode, folder: Path, *, file_entries: int, indexed: bool, lost: Collection[int] = ()
) -> NodeArchive:
    """Archive all but the newest entry; then remove the files that have entries with the numbers `lost`."""
    found = NodeArchive(lambda run: FolderStorage(folder, run), NODE, node.store)
    archive, log = found.current(), node.server.log
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "BLOCK_ENTRIES", BLOCK_ENTRIES)
        for begin in range(0, len(log) - 1, file_entries):
            end = min(begin + file_entries, len(log) - 1)
            archive.write(log[begin:end], log[begin - 1].position if begin else START)
    if indexed:
        assert not [one.problem for one in Upkeep(archive, lambda: pure_kinds(KINDS)).run() if one.problem]
    for part in archive.files():
        if any(part.first.n <= number <= part.last.n for number in lost):
            Path(archive.storage.place(part.name)).unlink()
    with node.server.changed:
        node.server.archived = node.server.trimmed = log[-2].position
        node.server.log = log[-1:]
    node.archive = found
    return found
