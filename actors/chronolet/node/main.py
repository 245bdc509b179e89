"""The main of `chronolet run`: one process of the node, from its first line of log to its clean end.

Comes in: settings. Goes out: an exit status. Next: whatever runs it (a service manager, `scripts/run`) starts it again
when it failed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time

import structlog

from chronolet.kernel.faults import Faults
from chronolet.kernel.hosting.process import Process
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet.node.agent_log import formats
from chronolet.node.collecting import piles_up
from chronolet.node.http import access
from chronolet.node.http.server import HttpServer, health_pages
from chronolet.node.redis_guard import RedisGuard
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import SettingsError
from chronolet.node.tuning import USUAL, Tuning
from chronolet.node.wiring import Node, build

END_SECONDS = 1.0
"""How long a clean end may take. What it did not get to, such as handing over, others find out by themselves."""

_M_ARENA_MAX = -8
_ARENAS = 2

SWITCH_SECONDS = 0.001
"""How long a thread computes while others wait: a fifth of Python's own. What a pod waits for is done in many short
steps between answers of Redis and Docker, each of which would wait so long for a thread that reads manifests.
"""

log = structlog.get_logger("chronolet.node")


def run(settings: Settings, faults: Faults | None = None, tuning: Tuning = USUAL) -> int:
    """Run until SIGTERM or SIGINT: 0. 1 if the process could not start, or failed."""
    formats.configure(settings.log_format)
    few_arenas()
    sys.setswitchinterval(SWITCH_SECONDS)
    told = _signals()
    try:
        node = _built(settings, faults, tuning)
        # A thread, for a start waits by itself for a server that may heal, and a signal must end that wait too.
        threading.Thread(target=_end_when_told, args=(told, node), name="signals", daemon=True).start()
        with _Surrounded(node, tuning):
            return _until_over(node)
    except (SettingsError, StoreUnreachable, StoreBroken) as error:
        log.error("cannot run", error=str(error))
        return 1


def few_arenas() -> None:
    """Have threads that are started from now on share malloc's arenas.

    glibc makes one for nearly each thread, up to eight a processor, and each keeps what its threads have freed: 3 MiB
    with 30 probed pods on two processors. Python's own lock lets one thread allocate at a time, so sharing costs next
    to nothing.
    """
    with contextlib.suppress(AttributeError):  # a C library without arenas
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def _signals() -> int:
    """A pipe that becomes readable with the first SIGTERM or SIGINT.

    Python runs handlers on the main thread only, which may sleep for good while another thread is given the signal;
    what is written to the pipe is written at once, on whatever thread.
    """
    told, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(told, True)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return told


def _built(settings: Settings, faults: Faults | None, tuning: Tuning) -> Node:
    try:
        return build(settings, faults, tuning)
    except OSError as error:
        raise SettingsError(
            f"--root-dir {settings.root_dir}: cannot be written: {error.strerror or error}; "
            "name a folder that this user may write, on a disk with room"
        ) from error


def _end_when_told(told: int, node: Node) -> None:
    """In time, whatever the process waits for: to kill it would do no harm, so a server that hangs need not keep it."""
    os.read(told, 1)
    log.info("stopping")
    node.process.give_up()
    time.sleep(END_SECONDS)
    log.warning("stopped without a clean end: something does not answer")
    os._exit(0)


class _Surrounded:
    """Everything beside the process itself: the agent's own Redis, the HTTP pages."""

    def __init__(self, node: Node, tuning: Tuning) -> None:
        self._node = node
        self._guard = None if node.settings.redis else _guard(node, tuning)
        self._http: HttpServer | None = None

    def __enter__(self) -> None:
        settings = self._node.settings
        log.info("starting", node=settings.node, root=str(settings.root_dir), pid=os.getpid())
        if said := piles_up(settings.actors):
            log.warning(said)
        _add_checks(self._node)
        try:
            # The pages first: they tell of a start that takes its time, too.
            if settings.port:
                self._http = _served(self._node)
                if self._node.stats is not None:
                    self._node.stats.start()
            if self._guard is not None:
                self._guard.start()
        except BaseException:
            self._stop()
            raise

    def __exit__(self, *_: object) -> None:
        self._stop()
        log.info("stopped")

    def _stop(self) -> None:
        self._node.process.retire()
        self._node.parts.probing.stop()
        if self._http is not None:
            self._http.stop()
        if self._node.stats is not None:
            self._node.stats.stop()
        self._node.parts.results.stop()
        if self._guard is not None:
            self._guard.stop()
        self._node.parts.runtime.close()
        self._node.parts.images.close()
        self._node.parts.store.close()


def _served(node: Node) -> HttpServer:
    settings = node.settings
    pages = {**health_pages(node.health), "/metrics": node.parts.metrics.page, **node.pages}
    pages["/trace"] = node.parts.metrics.spans.page
    if "prober" in settings.actors:
        pages["/metrics/probes"] = node.parts.metrics.probes.page
    server = HttpServer(settings.address, settings.port, pages, guard=access.guard(settings), tls=access.tls(settings))
    server.start()
    log.info("serving", address=settings.address, port=server.port)
    return server


def _guard(node: Node, tuning: Tuning) -> RedisGuard:
    settings = node.settings
    return RedisGuard(
        settings.root_dir,
        settings.redis_appendfsync,
        node.parts.disk,
        ballast_bytes=tuning.ballast_bytes,
        ballast_rest_seconds=tuning.ballast_rest_seconds,
        most_bytes=settings.redis_maxmemory << 20,
    )


def _until_over(node: Node) -> int:
    process = node.process
    process.start()
    process.wait()
    error = process.error
    if error is None:
        return 0
    # What was foreseen says all in one line; anything else is a defect, and its traceback is wanted.
    foreseen = isinstance(error, StoreUnreachable | StoreBroken)
    log.error("the process failed", error=str(error), exc_info=None if foreseen else error)
    return 1


def _add_checks(node: Node) -> None:
    process = node.process
    node.health.add("lease", lambda: "" if process.lease.valid() else "not renewed in time", ready_only=True)
    # A process that stands by is ready for all that it is there for: to take over.
    node.health.add(
        "phase",
        lambda: "" if process.phase in ("running", "standing by") else f"the process is {process.phase}",
        ready_only=True,
        remark=lambda: process.phase,
    )
    node.health.add("shards", lambda: _left_alone(process), ready_only=True)


def _left_alone(process: Process) -> str:
    """Hosting the others does not make a process ready: nobody decides for the pods of these."""
    left = sorted((str(shard), error) for shard, error in process.left_alone().items())
    return "; ".join(f"{shard} is left alone: {error}" for shard, error in left)
