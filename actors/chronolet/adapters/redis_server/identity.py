"""Identify the redis-server process of a folder by its user, its working folder and the socket that it serves.

Input: the server's folder and socket. Output: a process id, or the process that serves the socket. A process's name and
arguments alone prove nothing, because any user can choose them. A process with another user id, or with another working
folder (only our user may enter the server's folder), is not ours and never gets a signal. Next: `server`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket as sockets
import struct
from pathlib import Path
from typing import NamedTuple

_CONNECT_SECONDS = 0.5
_CREDENTIALS = struct.Struct("3i")
"""`struct ucred`: pid, uid, gid."""


class Peer(NamedTuple):
    """The process that listens on a unix socket. `pid` is 0 if the process is in another PID namespace."""

    pid: int
    uid: int


def serving(socket: Path) -> Peer | None:
    """Return the process that listens on the socket, as reported by the kernel (SO_PEERCRED); None if the socket
    accepts no connection.
    """
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECT_SECONDS)
        try:
            connection.connect(os.fspath(socket))
        except OSError:  # no process listens, or the backlog of a hanging server is full
            return None
        found = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(found)
    return Peer(pid, uid)


def find(folder: Path, socket: Path) -> int | None:
    """Return the process id of the folder's server; None if it is not running.

    A server that is starting is not listening yet, and one that is shutting down has stopped listening but still has
    its files open: both are found by searching all processes.
    """
    peer = serving(socket)
    if peer is not None and peer.uid == os.geteuid() and peer.pid:
        return peer.pid
    pids = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
    return next((pid for pid in pids if is_server(pid, folder, socket)), None)


def is_server(pid: int, folder: Path, socket: Path) -> bool:
    """Whether a process has our user id, has `folder` as its working folder, and was started to serve `socket`."""
    process = Path(f"/proc/{pid}")
    try:
        # The owner of /proc/<pid> is the process's effective user.
        if process.stat().st_uid != os.geteuid() or not (process / "cwd").samefile(folder):
            return False
        title = (process / "cmdline").read_bytes()
    except OSError:  # the process has exited, or access is denied
        return False
    path = os.fsencode(socket)
    return b"unixsocket:" + path in title or b"--unixsocket\0" + path in title


def end(pid: int, folder: Path, socket: Path, patience_seconds: float) -> bool:
    """Send SIGTERM to the folder's server and wait until it exits; return False on time-out.

    Uses a pidfd, since the process id may have been reused.
    """
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        if find(folder, socket) != pid:
            return True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGTERM)
        watch = select.poll()
        watch.register(process, select.POLLIN)
        return bool(watch.poll(patience_seconds * 1000))
    finally:
        os.close(process)
