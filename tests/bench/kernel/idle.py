"""The cost of an idle agent and its Redis: CPU time of both processes, read from /proc.

Input: a redis-server, or process ids. Output: CPU seconds per minute.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from chronolet.kernel.storage.redis.store import RedisStore
from tests.bench.figures import Figure
from tests.bench.kernel.child import begin, hosting

NODE = "idle"
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the user and system time that all threads of a process have used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def per_minute(pids: Sequence[int], seconds: float) -> list[float]:
    """Return the CPU seconds per minute of each process, measured over the next `seconds`."""
    started, before = time.monotonic(), [cpu_seconds(pid) for pid in pids]
    time.sleep(seconds)
    after, spent = [cpu_seconds(pid) for pid in pids], time.monotonic() - started
    return [(late - early) * 60 / spent for early, late in zip(before, after, strict=True)]


def figures(url: str, redis_pid: int, locks: Path, seconds: float) -> list[Figure]:
    """Measure a kernel process with three idle kinds, and its Redis; return the figure."""
    store = RedisStore(url, NODE)
    begin(store, NODE)
    store.close()
    with hosting(url, NODE, ("gauge", "ear", "job"), locks) as child:
        per_minute([child.pid], 2.0)  # finish work left over from the start
        ours, redis = per_minute([child.pid, redis_pid], seconds)
    return [
        Figure(
            name="idle kernel process and Redis",
            ours=ours + redis,
            unit="CPU s/min",
            goal=0.75,
            note=f"{ours:.2f} the kernel's, {redis:.2f} redis-server's, over {seconds:.0f} s",
        )
    ]
