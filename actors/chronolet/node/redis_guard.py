"""The guard of the agent's own redis-server: starts or adopts it, starts it again when it dies, and makes room when its
disk is full (DESIGN 4, last line).

Comes in: settings. Goes out: a running server; `BallastGone` and `BallastBack` for the keeper, who writes them into the
log. It works without the log, for the log may be what is down. Next: `kernel.server`, `kernel.ballast`.
"""

from __future__ import annotations

import os
import queue
import select
import shutil
import threading
from pathlib import Path
from typing import Literal

import structlog

from chronolet.keeper.signals import BallastBack, BallastGone
from chronolet.kernel.ballast import Ballast
from chronolet.kernel.server import OwnServer, ServerFailed
from chronolet.kernel.store import StoreUnreachable

LOOK_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
ROOM_BYTES = 4 << 20
"""With less than this on its disk, the server's next write may be its last."""
RESTORE_LOOKS = 60
"""The ballast is held again at the earliest so many looks after it was given up: what made room has time to last."""

log = structlog.get_logger("chronolet.node")


class RedisGuard:
    """Watches from a thread of its own, from `start` to `stop`. The server outlives it."""

    def __init__(
        self,
        root: Path,
        appendfsync: Literal["always", "everysec"],
        told: queue.SimpleQueue[BallastGone | BallastBack],
        ballast: Ballast | None = None,
    ) -> None:
        self._server = OwnServer(root, appendfsync=appendfsync)
        self._ballast = ballast or Ballast(root / "ballast")
        self._told = told
        self._stopping = threading.Event()
        self._looks_without_ballast = RESTORE_LOOKS
        self._thread = threading.Thread(target=self._watch, name="redis guard", daemon=True)

    def start(self) -> None:
        """Have a server that answers; StoreUnreachable says why there is none, and what to do."""
        how = self._ensure()
        log.info("own redis-server", how=how, pid=self._server.pid(), socket=str(self._server.socket))
        self._hold_ballast()
        self._thread.start()

    def stop(self) -> None:
        """Watch no more. The server goes on: the next agent adopts it."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

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
        if pid is None or self._ended(pid):
            if self._stopping.is_set():
                return
            how = self._ensure()
            log.warning("own redis-server was gone", how=how, pid=self._server.pid())
        if self._ballast.present() and self._free() < ROOM_BYTES:
            self._give_up("the disk is about to be full")
        elif not self._ballast.present():
            self._looks_without_ballast += 1
            if self._looks_without_ballast >= RESTORE_LOOKS:
                self._hold_ballast()

    def _ended(self, pid: int) -> bool:
        """Wait for the server's end, at most until the next look; the operating system tells at once."""
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            return bool(select.select([process], [], [], LOOK_SECONDS)[0])
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
            return self._server.ensure()

    def _give_up(self, error: str) -> None:
        freed = self._ballast.give_up()
        self._looks_without_ballast = 0
        log.error("disk full: the ballast was given up", freed_bytes=freed, error=error)
        self._told.put(BallastGone(freed_bytes=freed, error=error))

    def _hold_ballast(self) -> None:
        had = self._ballast.present()
        self._looks_without_ballast = 0
        if not self._ballast.restore():
            log.warning("too little room for a ballast", free_bytes=self._free(), wanted_bytes=self._ballast.size_bytes)
        elif not had:
            self._told.put(BallastBack(size_bytes=self._ballast.size_bytes))

    def _free(self) -> int:
        return shutil.disk_usage(self._server.folder).free
