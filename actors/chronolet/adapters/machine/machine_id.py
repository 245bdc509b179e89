"""Reads the machine's id from a file, /etc/machine-id unless a setting names another one.

Input: a path. Output: the id, or MachineIdUnknown with one line for the operator. Next: `node.site`. Source:
machine-id(5).
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

FLAG = "--machine-id-file"

_MOST_BYTES = 4096
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._:-]{0,127}\Z")
_UNSET = "uninitialized"
"""The content of the file during the first boot of a systemd machine, before it has an id."""
_REMEDY = (
    "create it with systemd-machine-id-setup, mount the host's file into the agent's container, or name another file "
    f"with {FLAG}"
)


class MachineIdUnknown(Exception):  # noqa: N818 - an expected condition, which may end by itself
    """The file holds no machine id. The text says which file, what was found, what was expected, and what to do."""


def read_machine_id(path: Path) -> str:
    """Return the id in the file. Raises MachineIdUnknown if the file is missing, unreadable, empty, not a regular file,
    or holds something other than one id.
    """
    try:
        content = _content(path)
    except FileNotFoundError:
        raise _unknown(path, "not found") from None
    except OSError as error:
        raise _unknown(path, f"cannot be read: {error.strerror or error}") from error
    found = content.decode("ascii", "replace").strip()
    if not found:
        raise _unknown(path, "empty")
    if found == _UNSET:
        raise _unknown(path, "the machine has no id yet (first boot)")
    if not _ID.match(found):
        raise _unknown(path, f"found {found[:40]!r}")
    return found


def _content(path: Path) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO must not block the agent
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(0, "not a regular file")
        return os.read(file, _MOST_BYTES)
    finally:
        os.close(file)


def _unknown(path: Path, found: str) -> MachineIdUnknown:
    return MachineIdUnknown(
        f"{FLAG} {path}: {found}, expected the machine's id, one word of letters and digits: {_REMEDY}"
    )
