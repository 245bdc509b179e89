"""Cuts a write that was cut short off an append-only file, back to where the last whole command or transaction ends.

Comes in: the folder that Redis keeps its append-only files in (`appendonlydir`), while no server has it open. Goes out:
how many bytes were cut off. Next: `server` asks for it when its redis-server refuses such a file.

Redis does the same itself (`aof-load-truncated yes`), but up to 8.x it leaves the beginning of a transaction in the
file: `MULTI`, and what follows it as far as it is whole. The server does not load that, and goes on behind it. The next
one then takes it for a part of the first transaction that was written after it: a step that never took place comes
back in half. Every write of ours is such a transaction. (Source: `loadSingleAppendOnlyFile` in Redis's `src/aof.c`;
seen with 7.0.15. Valkey cuts it off since its pull request 4342.)
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
    """The file is damaged in another way than by its last write, or is not what Redis writes. Nothing was changed."""


def cut_torn_end(folder: Path) -> int:
    """Make the last file of the manifest end with a whole write, on the disk too; the number of bytes that went.

    Raises RepairError; OSError where a file cannot be read or cut.
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
    """The file that is written to: the manifest's last one of type `i`. Its lines are `file NAME seq NUMBER type T`."""
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
    """How many bytes of the file are whole commands, and whole transactions where a transaction has begun."""
    whole = end = 0
    within = False
    for command in _commands(path):
        end += _size(command)
        name = command[0].upper() if len(command) == 1 else b""
        within = (within or name == _MULTI) and name != _EXEC
        if not within:
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
                raise RepairError(f"{path}: damaged behind command {number}: {error}") from error


def _size(command: list[bytes]) -> int:
    """The bytes that Redis wrote for it: the number of words, then each word's length and the word."""
    return len(b"*%d\r\n" % len(command)) + sum(len(b"$%d\r\n\r\n" % len(word)) + len(word) for word in command)
