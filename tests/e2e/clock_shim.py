"""A shim that shifts the wall clock of processes and leaves their monotonic clocks unchanged.

Input: a folder for the compiled library. Output: environment variables for a process, and a way to shift its clock.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.support.scratch import HANG_SECONDS

_SOURCE = Path(__file__).parents[1] / "support" / "machine" / "shifted_clock.c"


def clock_shim(folder: Path) -> tuple[dict[str, str], Callable[[int], None]]:
    """Return environment variables for the processes whose clock is shifted, and a function that sets their clock N
    seconds ahead.
    """
    library, clock = folder / "shifted_clock.so", folder / "clock"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, _SOURCE], check=True, timeout=HANG_SECONDS)
    clock.write_bytes(bytes(8))

    def set_ahead(seconds: int) -> None:
        with clock.open("r+b") as file:
            file.write(struct.pack("q", seconds))

    return {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(clock)}, set_ahead
