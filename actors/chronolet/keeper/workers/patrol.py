"""Finds missing and damaged archive files, checking a few of them at each measurement of the log.

Input: the archive and the position up to which the log was archived. Output: the problems, as one line. Each visit
compares the file names with the log, reads one file in turn, and rereads those that were damaged. Next: `effects`.
"""

from __future__ import annotations

from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet.kernel.log.gaps import gaps
from chronolet_schemas.envelope import Position

_NAMED = 3
"""At most this many problems are named; the rest are counted."""


class Patrol:
    """Checks an archive over many visits; remembers which file was read last and which were damaged. Not thread-safe.

    `reported`: the problems last reported. The first visit rereads the files named there, so that a restart of the
    process does not make known damage look repaired.
    """

    def __init__(self, reported: str = "") -> None:
        self._last = ""
        self._reported = reported
        self._damaged: dict[str, str] = {}

    def visit(self, archive: Archive, archived: Position) -> str:
        """Return what is wrong with the archive, or an empty string."""
        try:
            missing = [f"{archive.storage.place()}: the files {gap} are missing" for gap in gaps(archive, archived)]
            self._read(archive)
        except OSError as error:
            return f"{archive.storage.place()}: cannot be read: {_stable(error)}"
        problems = [*missing, *self._damaged.values()]
        if len(problems) > _NAMED:
            problems = [*problems[:_NAMED], f"{len(problems) - _NAMED} more"]
        return f"{'; '.join(problems)}: run `chronolet archive repair`" if problems else ""

    def _read(self, archive: Archive) -> None:
        names = [part.name for part in archive.files()]
        following = [name for name in names if name > self._last] or names
        due = {name for name in names if name in self._damaged or name in self._reported} | set(following[:1])
        self._reported = ""
        self._last = following[0] if following else ""
        self._damaged = {name: problem for name in sorted(due) if (problem := _problem(archive, name))}


def _problem(archive: Archive, name: str) -> str:
    try:
        archive.check(name)
    except ArchiveDamaged as error:
        return str(error)
    except OSError as error:
        return f"{archive.storage.place(name)}: cannot be read: {_stable(error)}"
    return ""


def _stable(error: OSError) -> str:
    """Return the error without details that differ each time: a changed text would be a new event in the log."""
    return error.strerror or "the service does not give it out"
