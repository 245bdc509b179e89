"""`chronolet` with tracemalloc, which reports on request how much memory the code of each file has allocated.

    python -P tests/bench/memory/traced.py PATH ARGUMENT...

Input: a path and chronolet's arguments; a file `<PATH>.asked`. Output: `<PATH>.json` (`Snapshot`), written atomically;
then `<PATH>.asked` is removed. Next: `packages`, which requests and reads it.

Most of the memory that remains after an import is code, which tracemalloc attributes to Python's importer. So the code
of each file is measured when it is loaded. Earlier imports are not measured.
"""

from __future__ import annotations

import runpy
import sys
import threading
import time
import tracemalloc
from collections import Counter
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import msgspec

PERIOD_SECONDS = 0.2


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes by file name. `allocated`: the memory that each file's code has allocated and not freed; `code`: the memory
    that was used for loading the file's code.
    """

    allocated: dict[str, int]
    code: dict[str, int]


class SnapshotThread(threading.Thread):
    """Writes a snapshot for each request."""

    def __init__(self, path: Path, code: dict[str, int]) -> None:
        super().__init__(name="traced", daemon=True)
        self._path = path
        self._code = code

    def run(self) -> None:
        request = self._path.with_name(f"{self._path.name}.asked")
        while True:
            time.sleep(PERIOD_SECONDS)
            if request.exists():
                self._write()
                request.unlink()

    def _write(self) -> None:
        allocated: Counter[str] = Counter()
        for one in tracemalloc.take_snapshot().statistics("filename"):
            allocated[one.traceback[0].filename] += one.size
        unfinished = self._path.with_name(f"{self._path.name}.new")
        unfinished.write_bytes(msgspec.json.encode(Snapshot(allocated=dict(allocated), code=dict(self._code))))
        unfinished.rename(self._path.with_name(f"{self._path.name}.json"))


def measured() -> dict[str, int]:
    """Return a dict of code sizes that is filled as modules are imported from now on."""
    found: dict[str, int] = {}
    load = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        before = tracemalloc.get_traced_memory()[0]
        code = load(self, fullname)
        found[self.path] = max(tracemalloc.get_traced_memory()[0] - before, 0)
        return code

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    return found


if __name__ == "__main__":
    tracemalloc.start()
    SnapshotThread(Path(sys.argv[1]), measured()).start()
    sys.argv = ["chronolet", *sys.argv[2:]]
    runpy.run_module("chronolet.cli", run_name="__main__")
