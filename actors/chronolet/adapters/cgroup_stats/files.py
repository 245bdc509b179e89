"""Read and parse the small files of the kernel's cgroup file systems.

Input: paths. Output: bytes, numbers, pressures. Next: `reader`. For a missing file the result is None or empty, because
a cgroup may be removed at any time; malformed text raises ValueError.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from chronolet.ports.machine.usage import Pressure, Stall

NO_LIMIT = 1 << 60
"""Values of this size or more mean no limit: v1 shows a missing limit as a number close to the largest possible one."""

_READ_BYTES = 65_536
_WHOLE_BYTES = 2_048  # the kernel may return a longer file in several reads


class Files:
    """Reads files. `reads` is the number of reads so far, which determines the cost of a sampling round."""

    def __init__(self) -> None:
        self.reads = 0

    def read(self, path: str) -> bytes | None:
        """Return the file's content; None if it cannot be read."""
        self.reads += 1
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            text = os.read(file, _READ_BYTES)
            if len(text) > _WHOLE_BYTES:
                while more := os.read(file, _READ_BYTES):
                    text += more
        except OSError:
            return None
        finally:
            os.close(file)
        return text

    def number(self, path: str) -> int:
        """Return the file's single number; 0 if there is no such file, NO_LIMIT if it contains `max`."""
        text = self.read(path)
        return number(text) if text else 0

    def pairs(self, path: str) -> Mapping[bytes, bytes]:
        """Return the file's lines as a mapping of names to values; empty if there is no such file."""
        return pairs(self.read(path) or b"")

    def pressure(self, path: str) -> Pressure | None:
        """Read a file with pressure stall information (PSI); None if there is no such file."""
        text = self.read(path)
        return pressure(text) if text else None


def number(text: bytes) -> int:
    """Parse a number; `max` means NO_LIMIT."""
    return NO_LIMIT if text.startswith(b"max") else int(text)


def pairs(text: bytes) -> Mapping[bytes, bytes]:
    """Parse lines that each consist of a name and a value."""
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=False))


def limit(found: int) -> int:
    """Return `found` if it is a limit; 0 if it means that there is none."""
    return found if 0 < found < NO_LIMIT else 0


def pressure(text: bytes) -> Pressure:
    """Parse the content of a PSI file. Kernels before 5.13 have no `full` line for the CPU."""
    lines = {words[0]: _stall(words) for words in map(bytes.split, text.splitlines()) if words}
    return Pressure(some=lines.get(b"some", Stall()), full=lines.get(b"full", Stall()))


def _stall(words: list[bytes]) -> Stall:
    values = [word.partition(b"=")[2] for word in words[1:5]]
    if len(values) < 4:  # noqa: PLR2004 - three averages and a total
        raise ValueError(f"PSI line {b' '.join(words)!r}: expected avg10, avg60, avg300 and total")
    return Stall(float(values[0]), float(values[1]), float(values[2]), int(values[3]))
