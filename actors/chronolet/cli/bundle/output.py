"""Creates the file that a command writes: whole or not at all, and readable only by its owner.

Input: a path. Output: a binary file, which gets its name when it is complete. Next: `save`, `anonymise`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from chronolet.cli.errors import Failure
from chronolet.history.bundle.writer import Unwritable


@contextmanager
def created(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Open a new file, which gets this name at the end of the block, or is removed if the block fails.

    Raises Failure if the path exists, unless `force` is given, or if it cannot be written or would not be readable.
    """
    if path.is_dir() or (not force and path.exists()):
        what = "is a folder, expected the name of a file" if path.is_dir() else "exists already: --force replaces it"
        raise Failure(f"{path}: {what}")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except Unwritable as error:
        raise Failure(f"{path}: not written, because no reader would accept it: {error}") from error
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


_BINARY = getattr(os, "O_BINARY", 0)  # only Windows has it
