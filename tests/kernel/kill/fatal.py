"""A kernel process with a fatal entity: the entity's message, timer or effect ends the process immediately.

Input: a server's URL, a folder. Output: the log on that server, and the exit status `DIED` if the entity ended the
process. Next: `test_fatal_messages`, which restarts the process repeatedly from a forkserver that has imported this
module.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import structlog

from chronolet.kernel.decider import Due
from chronolet.kernel.hosting.process import Process, Setup
from chronolet.kernel.kind import EffectContext
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.timing import Timing
from chronolet_schemas.envelope import Event, Signal
from tests.kernel import chore

NODE = "n1"
SHARDS = {"chore": 1}
DIED = 70
FATAL_DUE = 14_000
LEASE_MILLISECONDS = 3_600_000
"""Long enough never to lapse: otherwise an effect could be fenced instead of ending the process."""
TIMING = Timing(suspect_pause_seconds=0.2, looks_per_renewal=4_800)
"""Timing that fits this lease: the supervisor checks for free shards four times a second."""


def _decide(state: chore.Chore, message: object, now: int) -> Sequence[Event]:
    fatal = isinstance(message, chore.Assign) and message.raises
    if fatal or (isinstance(message, Due) and message.at == FATAL_DUE):
        os._exit(DIED)
    return chore.decide(state, message, now)


def _run(effect: chore.OneShot, context: EffectContext) -> Signal:
    context.fence("work")
    if context.entity == "fatal":
        os._exit(DIED)
    time.sleep(0.005)
    return chore.Result(intent=effect.intent)


def run(url: str, folder: Path) -> None:
    """Run until killed, until a fatal message, timer or effect ends the process, or until SIGTERM."""
    structlog.configure(logger_factory=structlog.WriteLoggerFactory((folder / "log").open("a")))
    decider = dataclasses.replace(chore.DECIDER, decide=_decide)
    kind = dataclasses.replace(chore.kind(_run), decider=decider)
    store = RedisStore(url, NODE)
    setup = Setup(
        node=NODE,
        store=store,
        kinds={"chore": kind},
        shards=SHARDS,
        locks=folder / "locks",
        lease_milliseconds=LEASE_MILLISECONDS,
        timing=TIMING,
    )
    process = Process(setup)
    signal.signal(signal.SIGTERM, lambda *_: process.stop_waiting())
    process.start()
    while not process.wait(0.1):
        pass  # Python runs the handler only on this thread, and the signal may have reached another one
    process.retire()
