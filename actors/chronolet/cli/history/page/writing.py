"""Writes the page of a part of a node's log.

Input: a session, a file, the moments where the page begins and ends. Output: the file. Next: `chronolet replay --html`.
"""

from __future__ import annotations

import os
import stat
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

_KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


class Written(NamedTuple):
    """How many entries a page shows, and its size."""

    entries: int
    bytes: int


def write_page(node: Session, file: Path, first: Located, last: Located) -> Written:
    """Write the page of the entries after `first`, up to and including `last`.

    The file is replaced when the page is complete. Raises Failure if there are no such entries, or if the file cannot
    be written, which is checked first: reading a long log takes minutes.
    """
    target = _target(file)
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
        size = _write(target, _page(node, recording, first, last))
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


def _target(file: Path) -> Path:
    """Return the file to replace, with symbolic links followed. Raises Failure if it is a device, a pipe or a folder,
    which must not be replaced, or if no file can be created next to it.
    """
    try:
        target = file.resolve()
        kind = target.stat().st_mode if target.exists() else stat.S_IFREG
        folder = target.parent.stat().st_mode
    except (OSError, RuntimeError) as error:  # RuntimeError: a circle of links, in Python 3.11 and 3.12
        raise _unwritable(file, error) from error
    if not stat.S_ISREG(kind):
        raise Failure(
            f"--html: {file}: found {_KINDS.get(stat.S_IFMT(kind), 'a special file')}, expected a regular file or a "
            "new name; nothing was written"
        )
    if not stat.S_ISDIR(folder) or not os.access(target.parent, os.W_OK | os.X_OK):
        reason = "not writable" if stat.S_ISDIR(folder) else "not a folder"
        raise Failure(f"--html: {file} cannot be written: {target.parent} is {reason}")
    return target


def _unwritable(file: Path, error: OSError | RuntimeError) -> Failure:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return Failure(f"--html: {file} cannot be written: {reason}")


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
        raise _unwritable(file, error) from error
