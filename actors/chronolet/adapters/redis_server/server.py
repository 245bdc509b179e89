"""The agent's own redis-server: it runs in `<state folder>/redis`, outlives the agent, and is used by the next agent.

Input: the state folder and a few settings. Output: the server's URL, or `ServerFailed` with the reason from its log.
Only `stop` ends the server. A lock prevents two agents from starting two servers on one append-only file; Redis has no
such lock. Next: `RedisStore` connects; the supervisor calls `ensure` again whenever the server is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import structlog

from chronolet.adapters.redis_server import append_only, binary, identity
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.kernel.storage.redis.errors import ConnectionLost, ResponseError
from chronolet.kernel.storage.store import StoreUnreachable

log = structlog.get_logger("chronolet.kernel")

_LONGEST_SOCKET_PATH = 107
_LOG_LIMIT_BYTES = 8 << 20
_LEAST_ROOM_BYTES = 1 << 20
_LEAST_MEMORY_BYTES = 64 << 20
"""Smallest default memory limit: four times the memory that a long log needs."""
_POLL_SECONDS = 0.01
_LONGEST_POLL_SECONDS = 0.1
_ANSWER_SECONDS = 2.0
_FULL = ("No space left on device", "Disk quota exceeded")
_DAMAGED = "Bad file format"
_CUT_SHORT = "Unexpected end of file"
_REASONS = (
    "can't",
    "cannot",
    "fatal",
    "failed",
    "error",
    "bad file",
    "unexpected end",
    *(text.lower() for text in _FULL),
)


class ServerFailed(StoreUnreachable):
    """The server did not start, does not reply or does not end, or another user's process serves its socket.
    `disk_full`: whether its disk is full.
    """

    def __init__(self, message: str, *, disk_full: bool = False) -> None:
        super().__init__(message, healing=True)
        self.disk_full = disk_full


class OwnServer:
    """The redis-server of one state folder. `patience_seconds`: how long it may take to load its data.
    `answer_seconds`: how long it may take to reply to one call.

    `most_bytes`: its memory limit, by default a quarter of the machine's memory; above the limit, the server accepts no
    more events but keeps its data.
    """

    def __init__(
        self,
        state_folder: Path,
        *,
        appendfsync: Literal["always", "everysec"] = "always",
        patience_seconds: float = 120.0,
        most_bytes: int = 0,
        answer_seconds: float = _ANSWER_SECONDS,
    ) -> None:
        self.folder = state_folder.absolute() / "redis"
        self.socket = self.folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._pid_file = self.folder / "redis.pid"
        self._log = self.folder / "redis.log"
        self._log_start = 0
        self._appendfsync = appendfsync
        self._patience = patience_seconds
        self._most_bytes = most_bytes or _default_bound()
        self._answer_seconds = answer_seconds
        self._child: subprocess.Popen[bytes] | None = None

    def ensure(self) -> Literal["adopted", "started"]:
        """Make sure that the server is running and replies; idempotent. Returns `adopted` if it was already running.

        Raises ServerFailed with the reason from the server's log, or StoreUnreachable(healing=False) if no server is
        installed or the socket's path is too long.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_socket_path()
        with self._locked():
            self._check_peer()
            channel = Channel(Address(self.url), self._answer_seconds)
            try:
                adopted = self.pid() is not None or _answers(channel)
                if adopted:
                    self._wait_for_answer(channel)
                else:
                    self._start_and_repair(channel)
            finally:
                channel.disconnect()
        return "adopted" if adopted else "started"

    def pid(self) -> int | None:
        """Return the process id of the running server; None if it is not running."""
        if self._child is not None:
            if self._child.poll() is None:
                return self._child.pid
            self._child = None
        return identity.find(self.folder, self.socket)

    def stop(self) -> None:
        """Shut the server down cleanly and wait until it exits; do nothing if it is not running. Raises ServerFailed if
        it does not exit in time.
        """
        pid = self.pid()
        if pid is None:
            return
        if not identity.end(pid, self.folder, self.socket, self._patience):
            raise ServerFailed(f"redis-server (pid {pid}) did not end within {self._patience:g} s")
        if self._child is not None:
            self._child.wait()
            self._child = None

    def _failure_reason(self) -> str:
        """Return why the server exited: the last lines of its log that look like errors."""
        try:
            with self._log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._log_start, size - 16384))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return "it left no log"
        reasons = [line for line in lines if any(pattern in line.lower() for pattern in _REASONS)] or lines
        return " | ".join(line.strip() for line in reasons[-3:]) or "its log is empty"

    def disk_full(self) -> bool:
        """Whether the server's disk is full: its log says so, or less than `_LEAST_ROOM_BYTES` are free, too little
        even to log it.
        """
        logged = any(text in self._failure_reason() for text in _FULL)
        return logged or shutil.disk_usage(self.folder).free < _LEAST_ROOM_BYTES

    # -- internal ------------------------------------------------------------------------------------------------

    def _check_socket_path(self) -> None:
        if len(os.fsencode(self.socket)) > _LONGEST_SOCKET_PATH:
            raise StoreUnreachable(
                f"{self.socket}: longer than {_LONGEST_SOCKET_PATH} bytes, the limit for a unix socket's path:"
                " choose a shorter --root-dir",
                healing=False,
            )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock. If another agent is starting the server, wait for it first."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _check_peer(self) -> None:
        """Raise ServerFailed if a process of another user serves the socket: it is not ours, so the agent does not end
        it.
        """
        peer = identity.serving(self.socket)
        if peer is not None and peer.uid != os.geteuid():
            raise ServerFailed(
                f"{self.socket}: served by process {peer.pid} of user {peer.uid}, expected user {os.geteuid()}:"
                " end that process, or choose another --root-dir"
            )

    def _start_and_repair(self, channel: Channel) -> None:
        self._start()
        try:
            self._wait_for_answer(channel)
        except ServerFailed as failure:
            if _CUT_SHORT not in str(failure) or not self._cut_torn_end():
                raise
            self._start()
            self._wait_for_answer(channel)

    def _cut_torn_end(self) -> bool:
        """Remove a last write that a crash of the server or the machine left incomplete: it was never acknowledged."""
        files = self.folder / "appendonlydir"
        try:
            removed = append_only.cut_torn_end(files)
        except (append_only.RepairError, OSError) as error:
            log.error("cannot repair the end of the append-only file", error=str(error))
            return False
        log.warning("removed an incomplete last write from the append-only file", folder=str(files), bytes=removed)
        return removed > 0

    def _start(self) -> None:
        program = binary.find()
        self.socket.unlink(missing_ok=True)
        self._pid_file.unlink(missing_ok=True)
        if self._log.exists() and self._log.stat().st_size > _LOG_LIMIT_BYTES:
            self._log.unlink()
        with self._log.open("ab") as output:
            self._log_start = output.tell()
            self._child = subprocess.Popen(
                [program.path, *self._settings()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                # In a new session, so that a signal to the agent's process group or terminal does not end the server.
                start_new_session=True,
            )

    def _settings(self) -> list[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "pidfile": str(self._pid_file),
            "daemonize": "no",
            "databases": "1",
            "appendonly": "yes",
            "appendfsync": self._appendfsync,
            # `append_only` removes an incomplete last write; Redis itself would leave a part of it.
            "aof-load-truncated": "no",
            # At this limit the server keeps its data and reports an error. Without one, it could exhaust the machine's
            # memory, and it or other processes would be killed.
            "maxmemory": str(self._most_bytes),
            "maxmemory-policy": "noeviction",
        }
        arguments = [argument for name, value in settings.items() for argument in (f"--{name}", value)]
        # An empty `save` must come last, because Redis would take an argument after it for its value.
        return [*arguments, "--save", ""]

    def _how_to_repair(self, failure: str) -> str:
        """Return advice for a damaged append-only file; empty if it is not damaged. The repair is not automatic,
        because it discards all data after the damage.
        """
        if _DAMAGED not in failure and _CUT_SHORT not in failure:
            return ""
        folder = self.folder / "appendonlydir"
        return (
            f"; the append-only file is damaged: back up {folder}, run"
            f" `redis-check-aof --fix {folder / append_only.MANIFEST}`, which truncates it at the damage, and restart"
            " the agent: it reports what is lost and keeps the running pods"
        )

    def _wait_for_answer(self, channel: Channel) -> None:
        deadline = time.monotonic() + self._patience
        pause = _POLL_SECONDS
        while not _answers(channel):
            if self.pid() is None:
                full = self.disk_full()
                room = " (its disk is full)" if full else ""
                failure = f"redis-server did not start{room}: {self._failure_reason()}"
                raise ServerFailed(f"{failure}{self._how_to_repair(failure)}", disk_full=full)
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"redis-server (pid {self.pid()}) did not reply within {self._patience:g} s:"
                    f" {self._failure_reason()}"
                )
            time.sleep(pause)
            # Loading a long log takes seconds, so there is no point in polling every 10 ms throughout.
            pause = min(pause * 1.2, _LONGEST_POLL_SECONDS)


def _default_bound() -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(machine // 4, _LEAST_MEMORY_BYTES)


def _answers(channel: Channel) -> bool:
    """Whether the server replies; False while it is loading its data."""
    try:
        channel.exchange(channel.pack("PING"), 1)
    except ConnectionLost:
        return False
    except ResponseError:
        return True
    return True
