"""The main of `chronolet run`: one process of the node, from its first line of log to its clean end.

Comes in: settings. Goes out: an exit status. Next: whatever runs it (a service manager, `scripts/run`) starts it again
when it failed.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading

import structlog

from chronolet.kernel.faults import Faults
from chronolet.kernel.store import StoreUnreachable
from chronolet.node.http import HttpServer, health_pages
from chronolet.node.redis_guard import RedisGuard
from chronolet.node.settings import Settings
from chronolet.node.values import SettingsError
from chronolet.node.wiring import Node, build

log = structlog.get_logger("chronolet.node")


def run(settings: Settings, faults: Faults | None = None) -> int:
    """Run until SIGTERM or SIGINT: 0. 1 if the process could not start, or failed."""
    _configure_logging(settings)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    node = build(settings, faults)
    try:
        with _Serving(node):
            return _until_over(node, stop)
    except (SettingsError, StoreUnreachable) as error:
        log.error("cannot run", error=str(error))
        return 1


class _Serving:
    """Everything beside the process itself: the agent's own Redis, the HTTP pages."""

    def __init__(self, node: Node) -> None:
        self._node = node
        settings = node.settings
        self._guard = None if settings.redis else RedisGuard(settings.root_dir, settings.redis_appendfsync, node.disk)
        pages = {**health_pages(node.health), "/metrics": node.metrics.page}
        self._http = HttpServer(settings.address, settings.port, pages) if settings.port else None

    def __enter__(self) -> None:
        settings = self._node.settings
        log.info("starting", node=settings.node, root=str(settings.root_dir), pid=os.getpid())
        if self._guard is not None:
            self._guard.start()
        _add_checks(self._node)
        if self._http is not None:
            self._http.start()
            log.info("serving", address=settings.address, port=self._http.port)

    def __exit__(self, *_: object) -> None:
        self._node.process.retire()
        if self._http is not None:
            self._http.stop()
        if self._guard is not None:
            self._guard.stop()
        self._node.runtime.close()
        self._node.store.close()
        log.info("stopped")


def _until_over(node: Node, stop: threading.Event) -> int:
    process = node.process

    def give_up_when_told() -> None:
        stop.wait()
        process.give_up()

    # A thread, for `start` waits by itself for a server that may heal, and a signal must end that wait too.
    threading.Thread(target=give_up_when_told, name="signals", daemon=True).start()
    process.start()
    process.wait()
    if process.error is not None:
        log.error("the process failed", error=str(process.error), exc_info=process.error)
        return 1
    return 0


def _add_checks(node: Node) -> None:
    process = node.process
    node.health.add("lease", lambda: "" if process.lease.valid() else "not renewed in time", ready_only=True)
    node.health.add(
        "phase", lambda: "" if process.phase == "running" else f"the process is {process.phase}", ready_only=True
    )


def _configure_logging(settings: Settings) -> None:
    level = logging.getLevelNamesMapping().get(os.environ.get("CHRONOLET_LOG_LEVEL", "INFO").upper(), logging.INFO)
    last = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
