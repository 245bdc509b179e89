"""`chronolet` with a thread that samples the stacks of all other threads a hundred times per second.

    python -m tests.bench.pods.sampled PATH ARGUMENT...

Input: a path and chronolet's arguments. Output: `<PATH>-<pid>.cpu` and `.wall`, folded stacks for flamegraph.pl and
speedscope: `thread;module:function;... microseconds`. They are written every second, because the agent is killed with
SIGKILL; deleting them restarts the sampling. Next: `profile`, which reads them.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

PERIOD_SECONDS = 0.01
WRITE_SECONDS = 1.0
DEEPEST = 60
UNSEEN = "threads that have ended;not seen"


class Sampler(threading.Thread):
    """Adds up, by stack, the CPU time and the elapsed time of each thread since the last sample."""

    def __init__(self, path: Path) -> None:
        super().__init__(name="sampler", daemon=True)
        self._path = path
        self._cpu: Counter[str] = Counter()
        self._wall: Counter[str] = Counter()
        self._had: dict[int, int] = {}
        self._used_before = 0.0
        self._has_written = False

    def run(self) -> None:
        looked = written = self._reset()
        while True:
            time.sleep(PERIOD_SECONDS)
            now = time.monotonic()
            self._look(round((now - looked) * 1e6))
            looked = now
            if now - written > WRITE_SECONDS:
                written = self._reset() if self._is_reset() else self._wrote(now)

    def _wrote(self, now: float) -> float:
        # CPU time of threads that ended before they were sampled.
        unseen = time.process_time() - time.thread_time() - self._used_before - self._cpu.total() / 1e6
        self._write(self._cpu | {UNSEEN: max(round(unseen * 1e6), 0)}, "cpu")
        self._write(self._wall, "wall")
        self._has_written = True
        return now

    def _is_reset(self) -> bool:
        return self._has_written and not self._file("cpu").exists()

    def _reset(self) -> float:
        self._cpu.clear()
        self._wall.clear()
        self._used_before = time.process_time() - time.thread_time()
        self._has_written = False
        return time.monotonic()

    def _look(self, passed: int) -> None:
        frames = sys._current_frames()
        for thread in threading.enumerate():
            frame, number = frames.get(thread.ident or 0), thread.native_id
            if thread is self or frame is None or number is None:
                continue
            stack = _folded(thread.name, frame)
            self._wall[stack] += passed
            used = _cpu_nanoseconds(number)
            spent = (used - self._had.get(number, 0)) // 1000
            self._had[number] = used
            if spent > 0:
                self._cpu[stack] += spent

    def _write(self, found: Mapping[str, int], kind: str) -> None:
        unfinished = self._file(f"{kind}.new")
        unfinished.write_text("".join(f"{stack} {amount}\n" for stack, amount in found.items()))
        unfinished.rename(self._file(kind))

    def _file(self, ending: str) -> Path:
        return self._path.with_name(f"{self._path.name}-{os.getpid()}.{ending}")


def _folded(thread: str, frame: FrameType | None) -> str:
    """Return the stack, outermost first, after its thread's name; for an effect's thread, the name consists of only the
    kind and the effect.
    """
    names: list[str] = []
    while frame is not None and len(names) < DEEPEST:
        module = frame.f_globals.get("__name__", "?")
        names.append(f"{module}:{frame.f_code.co_qualname}")
        frame = frame.f_back
    words = thread.split()
    owner = f"{words[0].partition('/')[0]} {words[1]}" if len(words) == 2 and "/" in words[0] else words[0]
    return ";".join([owner, *reversed(names)])


def _cpu_nanoseconds(number: int) -> int:
    """Return the CPU time that one thread of this process has used so far; 0 if the thread has ended."""
    try:
        return int(Path(f"/proc/self/task/{number}/schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return 0


if __name__ == "__main__":
    Sampler(Path(sys.argv[1])).start()
    sys.argv = ["chronolet", *sys.argv[2:]]
    runpy.run_module("chronolet.cli", run_name="__main__")
