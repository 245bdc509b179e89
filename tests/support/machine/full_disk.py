"""Fills a disk. Input: a folder on it. Output: the file that takes all its space."""

from io import RawIOBase
from pathlib import Path

import pytest


def fill(disk: Path) -> Path:
    """Fill the disk with a file in this folder; return its path."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with pytest.raises(OSError, match="No space left"):
                _write_on_and_on(file, bytes(size))
    return filler


def _write_on_and_on(file: RawIOBase, piece: bytes) -> None:
    while file.write(piece):
        pass
