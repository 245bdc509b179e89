"""The guard of the agent's own redis-server: starts it or uses one that is already running, restarts it when it dies,
and frees space when its disk is full.

Input: settings. Output: a running server, and disk signals for the keeper, which records them in the log. The guard
does not use the log, because the log is unavailable while the server is down. Next: `adapters.redis_server`,
`keeper.disk`.
"""

from __future__ import annotations

import os
import select
import shutil
import threading
import time
from pathlib import Path
from typing import Literal

import structlog

from chronolet.adapters.redis_server.disk_reserve import DiskReserve
from chronolet.adapters.redis_server.server import OwnServer, ServerFailed
from chronolet.keeper.disk import DiskReports
from chronolet.keeper.signals import ReserveReleased, ReserveRestored
from chronolet.kernel.storage.store import StoreUnreachable

CHECK_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
ROOM_BYTES = 4 << 20
"""Release the reserve below this much free space: otherwise the server's next write might fail and end the server."""

log = structlog.get_logger("chronolet.node")


class RedisGuard:
    """Watches the server from its own thread, from `start` to `stop`. The server keeps running after `stop`."""

    def __init__(
        self,
        root: Path,
        appendfsync: Literal["always", "everysec"],
        disk: DiskReports,
        *,
        reserve_bytes: int,
        reserve_rest_seconds: float,
        most_bytes: int = 0,
    ) -> None:
        """`reserve_bytes`: size of the disk reserve; `reserve_rest_seconds`: minimum time between releasing it and
        allocating it again; `most_bytes`: the server's memory limit, 0 for its default.
        """
        self._server = OwnServer(root, appendfsync=appendfsync, most_bytes=most_bytes)
        self._reserve = DiskReserve(root / "ballast", reserve_bytes)
        self._rest_seconds = reserve_rest_seconds
        self._disk = disk
        self._allocate_again_at = 0.0
        self._stopping = threading.Event()
        self._wake = os.eventfd(0)
        self._thread = threading.Thread(target=self._watch, name="redis guard", daemon=True)

    def start(self) -> None:
        """Start a server, or use one that is already running, and wait until it answers. Raises StoreUnreachable, which
        states the cause and the remedy.
        """
        ran_before = self._server.folder.exists()
        how = self._ensure()
        log.info("own redis-server", how=how, pid=self._server.pid(), socket=str(self._server.socket))
        if ran_before and not self._reserve.present():
            # The former agent may have died before it reported the release; the keeper ignores a second report.
            self._disk.publish(ReserveReleased(freed_bytes=0, error="there was no disk reserve when the agent started"))
        self._allocate_reserve()
        self._thread.start()

    def stop(self) -> None:
        """Stop watching. The server keeps running: the next agent uses it."""
        self._stopping.set()
        os.eventfd_write(self._wake, 1)
        if self._thread.ident is not None:
            self._thread.join()
        os.close(self._wake)

    # -- on the guard's thread -----------------------------------------------------------------------------------
    def _watch(self) -> None:
        pause = CHECK_SECONDS
        while not self._stopping.is_set():
            try:
                self._check()
                pause = CHECK_SECONDS
            except (StoreUnreachable, OSError) as error:
                log.error("own redis-server", error=str(error), again_in_seconds=pause)
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _check(self) -> None:
        pid = self._server.pid()
        exited = pid is None or self._has_exited(pid)
        if self._stopping.is_set():
            return
        if self._reserve.present() and self._free() < ROOM_BYTES:
            self._release_reserve("the disk is about to be full")
        if exited:
            how = self._ensure()
            log.warning("own redis-server had exited", how=how, pid=self._server.pid())
        elif not self._reserve.present() and time.monotonic() >= self._allocate_again_at:
            self._allocate_reserve()

    def _has_exited(self, pid: int) -> bool:
        """Wait until the server exits, the guard is stopped, or CHECK_SECONDS have passed. Returns whether the server
        has exited.
        """
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            # Not `select`, which rejects descriptors above 1023.
            watch = select.poll()
            for one in (process, self._wake):
                watch.register(one, select.POLLIN)
            return process in (found for found, _ in watch.poll(CHECK_SECONDS * 1000))
        finally:
            os.close(process)

    # -- disk space ----------------------------------------------------------------------------------------------
    def _ensure(self) -> Literal["adopted", "started"]:
        try:
            return self._server.ensure()
        except ServerFailed as failed:
            if not failed.disk_full or not self._reserve.present():
                raise
            self._release_reserve(str(failed))
        except OSError as error:  # the folder, or the lock in it, cannot be created
            raise ServerFailed(f"the state folder cannot be used: {error}") from error
        return self._server.ensure()

    def _release_reserve(self, error: str) -> None:
        freed = self._reserve.release()
        self._allocate_again_at = time.monotonic() + self._rest_seconds
        log.error("disk full: disk reserve released", freed_bytes=freed, error=error)
        self._disk.publish(ReserveReleased(freed_bytes=freed, error=error))

    def _allocate_reserve(self) -> None:
        """Allocate the disk reserve if there is enough free space; otherwise retry after `reserve_rest_seconds`."""
        self._allocate_again_at = time.monotonic() + self._rest_seconds
        try:
            allocated = self._reserve.restore()
        except OSError as error:
            allocated = False
            log.warning("cannot write the disk reserve", error=str(error))
        if allocated:
            self._disk.publish(ReserveRestored(size_bytes=self._reserve.size_bytes))
        else:
            needed = 2 * self._reserve.size_bytes
            log.warning("too little free space for the disk reserve", free_bytes=self._free(), wanted_bytes=needed)

    def _free(self) -> int:
        return shutil.disk_usage(self._server.folder).free
