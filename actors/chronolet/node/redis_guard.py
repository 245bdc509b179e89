"""The guard of the agent's own redis-server: starts or adopts it, starts it again when it dies, and makes room when its
disk is full (DESIGN 4, last line).

Comes in: settings. Goes out: a running server; how the disk stands, for the keeper, who writes it into the log. It
works without the log, for the log may be what is down. Next: `kernel.server`, `kernel.disk_reserve`, `keeper.disk`.
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
from chronolet.keeper.disk import Disk
from chronolet.keeper.signals import BallastBack, BallastGone
from chronolet.kernel.storage.store import StoreUnreachable

LOOK_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
ROOM_BYTES = 4 << 20
"""With less than this on its disk, the server's next write may be its last."""

log = structlog.get_logger("chronolet.node")


class RedisGuard:
    """Watches from a thread of its own, from `start` to `stop`. The server outlives it."""

    def __init__(
        self,
        root: Path,
        appendfsync: Literal["always", "everysec"],
        disk: Disk,
        *,
        ballast_bytes: int,
        ballast_rest_seconds: float,
        most_bytes: int = 0,
    ) -> None:
        self._server = OwnServer(root, appendfsync=appendfsync, most_bytes=most_bytes)
        self._ballast = DiskReserve(root / "ballast", ballast_bytes)
        self._rest_seconds = ballast_rest_seconds
        self._disk = disk
        self._hold_again_at = 0.0
        self._stopping = threading.Event()
        self._wake = os.eventfd(0)
        self._thread = threading.Thread(target=self._watch, name="redis guard", daemon=True)

    def start(self) -> None:
        """Have a server that answers; StoreUnreachable says why there is none, and what to do."""
        ran_before = self._server.folder.exists()
        how = self._ensure()
        log.info("own redis-server", how=how, pid=self._server.pid(), socket=str(self._server.socket))
        if ran_before and not self._ballast.present():
            # Given up by an agent that may have died before it could say so; whether it did, the keeper knows.
            self._disk.tell(BallastGone(freed_bytes=0, error="there was no ballast when the agent started"))
        self._hold_ballast()
        self._thread.start()

    def stop(self) -> None:
        """Watch no more. The server goes on: the next agent adopts it."""
        self._stopping.set()
        os.eventfd_write(self._wake, 1)
        if self._thread.ident is not None:
            self._thread.join()
        os.close(self._wake)

    # -- on the guard's thread -----------------------------------------------------------------------------------
    def _watch(self) -> None:
        pause = LOOK_SECONDS
        while not self._stopping.is_set():
            try:
                self._look()
                pause = LOOK_SECONDS
            except (StoreUnreachable, OSError) as error:
                log.error("own redis-server", error=str(error), again_in_seconds=pause)
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _look(self) -> None:
        pid = self._server.pid()
        ended = pid is None or self._ended(pid)
        if self._stopping.is_set():
            return
        if self._ballast.present() and self._free() < ROOM_BYTES:
            self._give_up("the disk is about to be full")
        if ended:
            how = self._ensure()
            log.warning("own redis-server was gone", how=how, pid=self._server.pid())
        elif not self._ballast.present() and time.monotonic() >= self._hold_again_at:
            self._hold_ballast()

    def _ended(self, pid: int) -> bool:
        """Wait for the server's end, at most until the next look; the operating system tells at once."""
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            # Not `select`: it refuses descriptors above 1023.
            watch = select.poll()
            for one in (process, self._wake):
                watch.register(one, select.POLLIN)
            return process in (found for found, _ in watch.poll(LOOK_SECONDS * 1000))
        finally:
            os.close(process)

    # -- room ----------------------------------------------------------------------------------------------------
    def _ensure(self) -> Literal["adopted", "started"]:
        try:
            return self._server.ensure()
        except ServerFailed as failed:
            if not failed.disk_full or not self._ballast.present():
                raise
            self._give_up(str(failed))
        except OSError as error:  # the folder, or the lock in it, cannot be made
            raise ServerFailed(f"the state folder cannot be used: {error}") from error
        return self._server.ensure()

    def _give_up(self, error: str) -> None:
        freed = self._ballast.release()
        self._hold_again_at = time.monotonic() + self._rest_seconds
        log.error("disk full: the ballast was given up", freed_bytes=freed, error=error)
        self._disk.tell(BallastGone(freed_bytes=freed, error=error))

    def _hold_ballast(self) -> None:
        """Hold it again if there is room; if not, look again after a while."""
        self._hold_again_at = time.monotonic() + self._rest_seconds
        try:
            held = self._ballast.restore()
        except OSError as error:
            held = False
            log.warning("no ballast could be written", error=str(error))
        if held:
            self._disk.tell(BallastBack(size_bytes=self._ballast.size_bytes))
        else:
            wanted = self._ballast.size_bytes
            log.warning("too little room for a ballast", free_bytes=self._free(), wanted_bytes=2 * wanted)

    def _free(self) -> int:
        return shutil.disk_usage(self._server.folder).free
