"""The agent's own redis-server: started in `<state folder>/redis`, outliving the agent, adopted by the next one.

Comes in: the state folder and a setting or two. Goes out: its URL, or `ServerFailed` with the reason its log gives.
Only `stop` ends it. A lock keeps two agents from starting two servers on one append-only file, which Redis itself does
not. Next: `RedisStore` connects; the supervisor calls `ensure` again whenever the server is gone.
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
"""Four times what a long log takes."""
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
    """The server did not come up, or does not answer. `disk_full`: its log says that its disk is."""

    def __init__(self, message: str, *, disk_full: bool = False) -> None:
        super().__init__(message, healing=True)
        self.disk_full = disk_full


class OwnServer:
    """One redis-server below a state folder. `patience_seconds`: for how long it may load its data.

    `most_bytes`: what it may hold in memory, a quarter of the machine's if not given; then it takes no more events, but
    keeps what it has.
    """

    def __init__(
        self,
        state_folder: Path,
        *,
        appendfsync: Literal["always", "everysec"] = "always",
        patience_seconds: float = 120.0,
        most_bytes: int = 0,
    ) -> None:
        self.folder = state_folder.absolute() / "redis"
        self.socket = self.folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._pid_file = self.folder / "redis.pid"
        self._log = self.folder / "redis.log"
        self._log_start = 0
        self._appendfsync = appendfsync
        self._patience = patience_seconds
        self._most_bytes = most_bytes or _usual_bound()
        self._child: subprocess.Popen[bytes] | None = None

    def ensure(self) -> Literal["adopted", "started"]:
        """Make sure that the server runs and answers; it may be called again at any time.

        Raises ServerFailed with the reason from its log; StoreUnreachable(healing=False) if there is none to start.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_socket_path()
        with self._alone():
            self._check_peer()
            channel = Channel(Address(self.url), _ANSWER_SECONDS)
            try:
                adopted = self.pid() is not None or _answers(channel)
                if adopted:
                    self._wait_for_answer(channel)
                else:
                    self._come_up(channel)
            finally:
                channel.disconnect()
        return "adopted" if adopted else "started"

    def pid(self) -> int | None:
        """The running server's process id; None if it does not run."""
        if self._child is not None:
            if self._child.poll() is None:
                return self._child.pid
            self._child = None
        return identity.find(self.folder, self.socket)

    def stop(self) -> None:
        """End the server cleanly and wait for its end; nothing if it does not run."""
        pid = self.pid()
        if pid is None:
            return
        if not identity.end(pid, self.folder, self.socket, self._patience):
            raise ServerFailed(f"the redis-server with pid {pid} did not end within {self._patience:g} s")
        if self._child is not None:
            self._child.wait()
            self._child = None

    def last_words(self) -> str:
        """What the server's log gives as reason for its end: the last lines that tell of something wrong."""
        try:
            with self._log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._log_start, size - 16384))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return "it left no log"
        telling = [line for line in lines if any(sign in line.lower() for sign in _REASONS)] or lines
        return " | ".join(line.strip() for line in telling[-3:]) or "its log is empty"

    def disk_full(self) -> bool:
        """Whether its disk is full: its last words say so, or it could not even write those for want of room."""
        told = any(text in self.last_words() for text in _FULL)
        return told or shutil.disk_usage(self.folder).free < _LEAST_ROOM_BYTES

    # -- within --------------------------------------------------------------------------------------------------

    def _check_socket_path(self) -> None:
        if len(os.fsencode(self.socket)) > _LONGEST_SOCKET_PATH:
            raise StoreUnreachable(
                f"{self.socket}: a unix socket's path has at most {_LONGEST_SOCKET_PATH} bytes:"
                " choose a shorter --root-dir",
                healing=False,
            )

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock; another agent that starts the server at this moment is waited for."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _check_peer(self) -> None:
        """Refuse a socket that a process of another user serves: it is none of ours, and not ours to end."""
        peer = identity.serving(self.socket)
        if peer is not None and peer.uid != os.geteuid():
            raise ServerFailed(
                f"{self.socket}: served by process {peer.pid} of user {peer.uid}, expected user {os.geteuid()}:"
                " end that process, or choose another --root-dir"
            )

    def _come_up(self, channel: Channel) -> None:
        self._start()
        try:
            self._wait_for_answer(channel)
        except ServerFailed as refused:
            if _CUT_SHORT not in str(refused) or not self._cut_torn_end():
                raise
            self._start()
            self._wait_for_answer(channel)

    def _cut_torn_end(self) -> bool:
        """Cut off what the server's end, or the machine's, left of its last write: it was never acknowledged."""
        files = self.folder / "appendonlydir"
        try:
            cut = append_only.cut_torn_end(files)
        except (append_only.RepairError, OSError) as error:
            log.error("the end of redis-server's file cannot be repaired", error=str(error))
            return False
        log.warning(
            "redis-server's last write was cut short; what is there of it is cut off", folder=str(files), bytes=cut
        )
        return cut > 0

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
                # A session of its own: what ends the agent, or its terminal, does not end the log.
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
            # A write that was cut short is cut off by `append_only`: Redis itself would leave half of it.
            "aof-load-truncated": "no",
            # A full server keeps what it has and says so; one that takes the machine's memory is killed, or others are.
            "maxmemory": str(self._most_bytes),
            "maxmemory-policy": "noeviction",
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        # An empty `save` has to come last: the word after it would be taken for its value.
        return [*words, "--save", ""]

    def _how_to_repair(self, words: str) -> str:
        """What to do about a damaged append-only file. Not done by itself: it throws away all behind the damage."""
        if _DAMAGED not in words and _CUT_SHORT not in words:
            return ""
        folder = self.folder / "appendonlydir"
        return (
            f"; the log's file is damaged: copy {folder} aside, run"
            f" `redis-check-aof --fix {folder / append_only.MANIFEST}`, which cuts it off at the damage, and start"
            " the agent again: it reports what is lost and goes on with what runs"
        )

    def _wait_for_answer(self, channel: Channel) -> None:
        deadline = time.monotonic() + self._patience
        pause = _POLL_SECONDS
        while not _answers(channel):
            if self.pid() is None:
                full = self.disk_full()
                room = " (its disk is full)" if full else ""
                words = f"redis-server did not come up{room}: {self.last_words()}"
                raise ServerFailed(f"{words}{self._how_to_repair(words)}", disk_full=full)
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"the redis-server with pid {self.pid()} does not answer within {self._patience:g} s:"
                    f" {self.last_words()}"
                )
            time.sleep(pause)
            # Loading a long log takes seconds, in which nothing is won by asking a hundred times each.
            pause = min(pause * 1.2, _LONGEST_POLL_SECONDS)


def _usual_bound() -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(machine // 4, _LEAST_MEMORY_BYTES)


def _answers(channel: Channel) -> bool:
    """Whether the server answers; one that still loads its data does not yet."""
    try:
        channel.exchange(channel.pack("PING"), 1)
    except ConnectionLost:
        return False
    except ResponseError:
        return True
    return True
