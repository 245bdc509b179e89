"""Remove an incomplete last write from an append-only file, so that the file ends with a whole command or transaction.

Input: the folder in which Redis stores append-only files (`appendonlydir`), while no server has them open. Output: the
number of bytes removed. Next: `server` calls this when its redis-server refuses such a file.

Redis can do this itself (`aof-load-truncated yes`), but versions up to 8.x leave the beginning of a transaction in the
file: `MULTI` and the whole commands after it. The server does not load these commands, but appends new ones after them.
The next server takes them for a part of the first appended transaction, and so loads half of a step that never
happened. Each write of the agent is such a transaction. (Source: `loadSingleAppendOnlyFile` in Redis's `src/aof.c`;
seen with 7.0.15. Valkey removes such commands since its pull request 4342.)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hiredis

MANIFEST = "appendonly.aof.manifest"
_MULTI, _EXEC = b"MULTI", b"EXEC"
_CHUNK_BYTES = 1 << 20


class RepairError(Exception):
    """The file is damaged somewhere other than at its end, or was not written by Redis. Nothing was changed."""


def cut_torn_end(folder: Path) -> int:
    """Truncate the newest append-only file in `folder` after its last whole write, and sync it; return the number of
    bytes removed. Raises RepairError, or OSError.
    """
    path = _last_file(folder)
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        whole = _whole_bytes(path)
        if whole < size:
            file.truncate(whole)
            os.fsync(file.fileno())
    return size - whole


def _last_file(folder: Path) -> Path:
    """Return the file to which Redis appends: the last one of type `i` in the manifest, whose lines are `file NAME seq
    NUMBER type T`.
    """
    manifest = folder / MANIFEST
    name = None
    for line in manifest.read_text().splitlines():
        words = line.split()
        fields = dict(zip(words[::2], words[1::2], strict=False))
        if fields.get("type") == "i":
            name = fields.get("file")
    if name is None or Path(name).name != name:
        raise RepairError(f"{manifest}: names no file of type i, expected a line like `file NAME seq 1 type i`")
    return folder / name


def _whole_bytes(path: Path) -> int:
    """Return the length of the file's prefix that consists of whole commands and whole transactions."""
    whole = end = 0
    in_transaction = False
    for command in _commands(path):
        end += _size(command)
        name = command[0].upper() if len(command) == 1 else b""
        in_transaction = (in_transaction or name == _MULTI) and name != _EXEC
        if not in_transaction:
            whole = end
    return whole


def _commands(path: Path) -> Iterator[list[bytes]]:
    reader = hiredis.Reader()
    number = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            reader.feed(chunk)
            try:
                while (command := reader.gets()) is not False:
                    number += 1
                    if not isinstance(command, list) or not command or not all(isinstance(w, bytes) for w in command):
                        raise RepairError(f"{path}: command {number} is {command!r:.80}, expected a list of words")
                    yield command
            except hiredis.ProtocolError as error:
                raise RepairError(f"{path}: damaged after command {number}: {error}") from error


def _size(command: list[bytes]) -> int:
    """Return the encoded size in bytes: the number of words, then each word's length and the word."""
    return len(b"*%d\r\n" % len(command)) + sum(len(b"$%d\r\n\r\n" % len(word)) + len(word) for word in command)
