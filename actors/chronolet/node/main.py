"""The main function of `chronolet run`: runs one agent process from its first log line to its clean shutdown.

Input: settings. Output: an exit status. Next: the service manager (or `scripts/run`), which restarts the process after
a failure.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading

import structlog

from chronolet.kernel.faults import Faults
from chronolet.kernel.hosting.process import Process
from chronolet.kernel.ownership.life_lock import NameTaken
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet.node import service_manager
from chronolet.node.agent_log import formats
from chronolet.node.composition.collectors import uncollected
from chronolet.node.composition.wiring import Node, build
from chronolet.node.http import access
from chronolet.node.http.server import HttpServer, health_pages
from chronolet.node.redis_guard import RedisGuard
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import SettingsError
from chronolet.node.tuning import DEFAULTS, Tuning

_M_ARENA_MAX = -8
_ARENAS = 2

SWITCH_SECONDS = 0.001
"""Python's thread switch interval: a fifth of the default. A pod's start consists of many short steps between replies
from Redis and Docker, and each step may wait this long for a busy thread, for example one that reads manifests.
"""

log = structlog.get_logger("chronolet.node")


def run(settings: Settings, faults: Faults | None = None, tuning: Tuning = DEFAULTS) -> int:
    """Run until SIGTERM or SIGINT. Returns 0, or 1 if the process could not start or failed."""
    formats.configure(settings.log_format)
    limit_arenas()
    sys.setswitchinterval(SWITCH_SECONDS)
    signalled = _signals()
    try:
        node = _built(settings, faults, tuning)
        # On a thread, because the process waits for an unreachable server, and a signal must end that wait, too.
        threading.Thread(
            target=_stop_on_signal, args=(signalled, node, tuning.end_seconds), name="signals", daemon=True
        ).start()
        manager = service_manager.taken_from(os.environ, os.getpid())
        with _Services(node, tuning), service_manager.reporting(node.process, manager):
            return _run_process(node)
    except (SettingsError, StoreUnreachable, StoreBroken, NameTaken) as error:
        log.error("cannot run", error=str(error))
        return 1


def limit_arenas() -> None:
    """Limit the number of malloc arenas, which all threads started from now on share.

    glibc creates an arena for nearly every thread, up to eight per processor, and each arena retains the memory that
    its threads have freed: 3 MiB with 30 probed pods on two processors. The GIL lets only one thread allocate at a
    time, so sharing costs next to nothing.
    """
    with contextlib.suppress(AttributeError):  # a C library without arenas
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def _signals() -> int:
    """Return the read end of a pipe that receives a byte with each SIGTERM or SIGINT.

    Python runs signal handlers only on the main thread, which may sleep indefinitely while another thread receives the
    signal. The write to the pipe happens immediately, on any thread.
    """
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(read, True)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return read


def _built(settings: Settings, faults: Faults | None, tuning: Tuning) -> Node:
    try:
        return build(settings, faults, tuning)
    except OSError as error:
        raise SettingsError(
            f"--root-dir {settings.root_dir}: cannot be written: {error.strerror or error}; "
            "choose a folder that this user may write to, on a disk with free space"
        ) from error


def _stop_on_signal(signalled: int, node: Node, end_seconds: float) -> None:
    """Stop the process at the first signal. Exit at the second one, or if that takes `end_seconds` longer than handing
    over the shards to other processes may take: a server may hang.

    An abrupt exit is safe: recovery handles it like a kill.
    """
    os.read(signalled, 1)
    log.info("stopping")
    seconds = end_seconds + node.process.seconds_to_retire()
    node.process.stop_waiting()
    again, _, _ = select.select([signalled], [], [], seconds)
    if again:
        log.warning("stopped without a clean shutdown: a second signal came")
    else:
        log.warning("stopped without a clean shutdown: something does not respond")
    os._exit(0)


class _Services:
    """The services that run alongside the kernel process: the guard of the agent's own Redis, the HTTP server, and the
    usage sampler.
    """

    def __init__(self, node: Node, tuning: Tuning) -> None:
        self._node = node
        self._guard = None if node.settings.redis else _guard(node, tuning)
        self._http: HttpServer | None = None

    def __enter__(self) -> None:
        settings = self._node.settings
        log.info("starting", node=settings.node, root=str(settings.root_dir), pid=os.getpid())
        if warning := uncollected(settings.actors):
            log.warning(warning)
        _add_checks(self._node)
        try:
            # Serve the pages first, so that they can report a slow start.
            if settings.port:
                self._http = _served(self._node)
                if self._node.stats is not None:
                    self._node.stats.start()
            if self._guard is not None:
                self._guard.start()
            if self._node.traces is not None:
                self._node.traces.start()
        except BaseException:
            self._stop()
            raise

    def __exit__(self, *_: object) -> None:
        self._stop()
        log.info("stopped")

    def _stop(self) -> None:
        self._node.process.retire()
        self._node.parts.probing.stop()
        if self._node.traces is not None:
            self._node.traces.stop()
        if self._http is not None:
            self._http.stop()
        if self._node.stats is not None:
            self._node.stats.stop()
        self._node.parts.results.stop()
        if self._guard is not None:
            self._guard.stop()
        self._node.sited.close()
        self._node.parts.runtime.close()
        self._node.parts.images.close()
        self._node.parts.segments.close()
        self._node.parts.store.close()


def _served(node: Node) -> HttpServer:
    settings = node.settings
    pages = {**health_pages(node.health), "/metrics": node.parts.metrics.page, **node.pages}
    pages["/trace"] = node.parts.metrics.spans.page
    if "prober" in settings.actors:
        pages["/metrics/probes"] = node.parts.metrics.probes.page
    server = HttpServer(
        settings.address,
        settings.port,
        pages,
        guard=access.guard(settings),
        tls=access.tls(settings),
        served=node.parts.metrics.requests.served,
    )
    server.start()
    log.info("serving", address=settings.address, port=server.port)
    return server


def _guard(node: Node, tuning: Tuning) -> RedisGuard:
    settings = node.settings
    return RedisGuard(
        settings.root_dir,
        settings.redis_appendfsync,
        node.parts.disk,
        reserve_bytes=tuning.disk_reserve_bytes,
        reserve_rest_seconds=tuning.disk_reserve_rest_seconds,
        most_bytes=settings.redis_maxmemory << 20,
    )


def _run_process(node: Node) -> int:
    process = node.process
    node.sited.look_ahead()
    process.start()
    process.wait()
    error = process.error
    if error is None:
        return 0
    # An expected error explains itself in one line; any other error is a defect and needs its traceback.
    expected = isinstance(error, StoreUnreachable | StoreBroken | NameTaken)
    log.error("process failed", error=str(error), exc_info=None if expected else error)
    return 1


def _add_checks(node: Node) -> None:
    process = node.process
    node.health.add("lease", lambda: "" if process.lease.valid() else "not renewed in time", ready_only=True)
    # A standby is ready: its only task is to take over.
    node.health.add(
        "phase",
        lambda: "" if process.phase in ("running", "standing by") else f"the process is {process.phase}",
        ready_only=True,
        remark=lambda: process.phase,
    )
    node.health.add("shards", lambda: _quarantined(process), ready_only=True)


def _quarantined(process: Process) -> str:
    """Return the quarantined shards, each with its error. They make a process unready: nothing is decided for their
    pods.
    """
    found = sorted((str(shard), error) for shard, error in process.quarantined().items())
    return "; ".join(f"{shard} is quarantined: {error}" for shard, error in found)
