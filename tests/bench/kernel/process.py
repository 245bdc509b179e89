"""A process that hosts the kinds of `gauge` with the real kernel, as the agent hosts its kinds.

    python -m tests.bench.kernel.process URL NODE KINDS LOCKS

Input: its arguments. Output: `running <monotonic ns>`, then the lines written by the jobs' effects. SIGTERM stops it
cleanly. Next: `child`, which starts it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from chronolet.kernel.hosting.process import Process, Setup
from chronolet.kernel.storage.redis.store import RedisStore
from tests.bench.kernel import gauge


def main() -> None:
    url, node, names, locks = sys.argv[1:]
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    known = gauge.kinds()
    kinds = {name: known[name] for name in names.split(",")}
    process = Process(
        Setup(node=node, store=RedisStore(url, node), kinds=kinds, shards=gauge.SHARDS, locks=Path(locks))
    )
    process.start()
    while process.phase != "running":
        time.sleep(0.005)
    os.write(1, f"running {time.monotonic_ns()}\n".encode())
    stopped.wait()
    process.retire()


if __name__ == "__main__":
    main()
