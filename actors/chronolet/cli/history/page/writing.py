"""Writes the page of a part of a node's log.

Input: a session, a file, the moments where the page begins and ends. Output: the file. Next: `chronolet replay --html`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from chronolet.cli.errors import Failure
from chronolet.cli.get.nodes import created_at
from chronolet.cli.history.page.viewer import KINDS, NodeViewer
from chronolet.cli.printing import ages
from chronolet.cli.printing.progress import progress
from chronolet.cli.session import Session
from chronolet.cli.version import installed_version
from chronolet.history.page.document import document
from chronolet.history.page.recording import Recording
from chronolet.history.when import Located


class Written(NamedTuple):
    """How many entries a page shows, and its size."""

    entries: int
    bytes: int


def write_page(node: Session, file: Path, first: Located, last: Located) -> Written:
    """Write the page of the entries after `first`, up to and including `last`.

    The file is replaced when the page is complete. Raises Failure if there are no such entries, or if the file cannot
    be written.
    """
    created = created_at(node)
    node.at = first
    folding = node.folding(*KINDS)
    node.at = last
    recording = Recording(NodeViewer(folding, node.settings.node, created))
    with progress("reading the node's log"):
        recording.read(node.entries(first.position))
    if not len(recording):
        raise Failure("--html: found no entries between --from and --to, expected at least one")
    node.unreadable.update(folding.unreadable)
    with progress("writing the page"):
        size = _write(file, _page(node, recording, first, last))
    return Written(len(recording), size)


def _page(node: Session, recording: Recording, first: Located, last: Located) -> Iterator[str]:
    facts = {
        "node": node.settings.node,
        "version": installed_version(),
        "begin": {"position": str(first.position), "milliseconds": first.milliseconds},
        "end": {"milliseconds": last.milliseconds},
        "ages": {"steps": ages.STEPS, "year": ages.YEAR},
    }
    return document(f"{node.settings.node} - chronolet", recording.parts(facts), recording.texts())


def _write(file: Path, pieces: Iterable[str]) -> int:
    """Write the file, and return its size in bytes."""
    with _replaced(file) as out:
        for piece in pieces:
            out.write(piece.encode())
        return out.tell()


@contextmanager
def _replaced(file: Path) -> Iterator[IO[bytes]]:
    """Open a new file, which replaces `file` at the end of the block if that succeeds. Like the log, only its owner can
    read it.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        scratch = Path(name)
        try:
            with os.fdopen(handle, "wb") as out:
                yield out
            scratch.replace(file)
        except BaseException:
            with suppress(OSError):
                scratch.unlink()
            raise
    except OSError as error:
        raise Failure(f"--html: {file} cannot be written: {error.strerror or error}") from error
