"""A process that hosts the kinds of `gauge` with the real kernel, as the agent hosts its kinds.

    python -m tests.bench.kernel.process URL NODE KINDS LOCKS [NAME]

Input: its arguments. Output: `running <monotonic ns>`, then the lines written by the jobs' effects. SIGTERM stops it
cleanly; the last line is then `decoded <number of messages that it has decoded since it runs>`. Next: `child`, which
starts it.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import structlog

from chronolet.kernel.hosting.process import Process, Setup
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec
from tests.bench.kernel import gauge


def main() -> None:
    url, node, names, locks = sys.argv[1:5]
    # Standard output is for the lines.
    structlog.configure(
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
    )
    # Blocked in all threads: a thread that starts another one may receive the signal, which does not wake this one.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    known = gauge.kinds()
    kinds = {name: known[name] for name in names.split(",")}
    process = Process(
        Setup(
            node=node,
            store=RedisStore(url, node),
            kinds=kinds,
            shards=gauge.SHARDS,
            locks=Path(locks),
            name="".join(sys.argv[5:]),
        )
    )
    process.start()
    while process.phase not in ("running", "standing by"):
        time.sleep(0.005)
    decoded = _counted()
    os.write(1, f"running {time.monotonic_ns()}\n".encode())
    signal.sigwait([signal.SIGTERM])
    process.retire()
    os.write(1, f"decoded {decoded[0]}\n".encode())


def _counted() -> list[int]:
    """Count the messages that this process decodes from now on, in the list's only item."""
    decode, count = codec.decode, [0]

    def counting(*arguments: Any) -> Any:
        count[0] += 1
        return decode(*arguments)

    codec.decode = counting
    return count


if __name__ == "__main__":
    main()
