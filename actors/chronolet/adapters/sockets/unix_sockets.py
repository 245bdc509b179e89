"""Listen on unix sockets, and start the gRPC servers behind them when the first client connects.

Input: a path, and a function that returns handlers. Output: a server that runs until it is stopped; `SocketError`.
Next: `device_plugins`, `pod_resources`; `relay`, which accepts the connections; `grpc_sockets`, which answers them.

Most nodes have no device plugin, and grpc takes 25 MiB and a tenth of a second of CPU, so the socket is served without
grpc until it is needed. Loading grpc does not change the socket, because plugins interpret a new socket as a restart of
the kubelet.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import AF_UNIX
from socket import socket as stream_socket
from typing import TYPE_CHECKING

import msgspec

from chronolet.adapters.sockets.paths import SocketError, check_length
from chronolet.adapters.sockets.relay import BACKLOG, Relay

if TYPE_CHECKING:
    import grpc

_INNER_NAME = ".grpc"
"""Name of the gRPC server's own socket, in the folder of the served socket."""
_NEW_PREFIX = ".new-"
"""Prefix of the name of a socket that is not listening yet, in the same folder; the process id follows."""

Identity = tuple[int, int, int]
"""Device, inode and modification time. Inode numbers alone are not enough, because they are soon reused."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals of a served socket.

    `check_seconds`: how often to check that the socket is still at its path. `grace_seconds`: how long running calls
    may take after the server has been asked to stop. `alive_seconds`: how long a server that is starved of CPU may take
    to reply; if no process listens, no time is spent waiting.
    """

    check_seconds: float = 1.0
    grace_seconds: float = 1.0
    alive_seconds: float = 5.0


DEFAULT_TIMING = Timing()


def identity(path: str | os.PathLike[str]) -> Identity | None:
    """Return the identity of the socket at this path; None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    # ctime is unsuitable because it also changes with permissions.
    return (found.st_dev, found.st_ino, found.st_mtime_ns) if stat.S_ISSOCK(found.st_mode) else None


def serve(
    socket: Path,
    handlers: Callable[[], Sequence[grpc.GenericRpcHandler]],
    opened: Callable[[], None],
    stop: threading.Event,
    *,
    prepare: Callable[[], None] = lambda: None,
    most_calls: int = 64,
    timing: Timing = DEFAULT_TIMING,
) -> None:
    """Recreate the socket and serve it until `stop` is set. `prepare` is called each time before the socket is created,
    and `opened` each time it listens, before the first call is handled. Concurrent calls beyond `most_calls` are
    refused. `handlers` is called when the first client connects.

    The socket is also recreated if another process removes it, and is removed at the end. Raises SocketError if the
    socket cannot be created or if a live process already serves it; sockets left behind by dead processes are removed.
    """
    inner = socket.with_name(_INNER_NAME)

    def start_server() -> Callable[[], None]:
        from chronolet.adapters.sockets import grpc_sockets  # noqa: PLC0415 - loads grpc

        inner.unlink(missing_ok=True)
        return grpc_sockets.started(inner, handlers(), most_calls, timing.grace_seconds)

    while not stop.is_set():
        make_room(socket, timing.alive_seconds)
        prepare()
        with _listening(socket) as (listener, made):
            opened()
            with Relay(listener, inner, start_server) as relay:
                while identity(socket) == made and not relay.failed and not stop.wait(timing.check_seconds):
                    pass
        if relay.failed:
            raise SocketError(f"{socket}: cannot serve connections: {relay.failed}") from relay.failed


@contextmanager
def _listening(socket: Path) -> Iterator[tuple[stream_socket, Identity | None]]:
    """Yield the listening socket and its identity. At the end the socket is removed, unless another process has
    replaced it.

    The socket appears at its path only once it listens, because plugins connect as soon as they see it. Unlike a
    rename, a link fails if another process was faster.
    """
    new = socket.with_name(f"{_NEW_PREFIX}{os.getpid()}")
    with stream_socket(AF_UNIX) as listener:
        try:
            new.unlink(missing_ok=True)
            try:
                listener.bind(str(new))
                listener.listen(BACKLOG)
                socket.hardlink_to(new)
            finally:
                new.unlink(missing_ok=True)
        except OSError as error:
            raise SocketError(f"{socket}: cannot listen: {error.strerror or error}") from error
        made = identity(socket)
        try:
            yield listener, made
        finally:
            if made and identity(socket) == made:
                with suppress(OSError):  # the next start removes the socket
                    socket.unlink()


def make_room(socket: Path, alive_seconds: float) -> None:
    """Create the socket's folder and free its path. Raises SocketError if that fails or if a live process serves the
    socket.
    """
    check_length(str(socket))
    try:
        socket.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        if identity(socket) and _answers(socket, alive_seconds):
            raise SocketError(f"{socket}: another process serves it; end it, or choose another folder")
        socket.unlink(missing_ok=True)
        for left in socket.parent.glob(f"{_NEW_PREFIX}*"):  # left by a process that was killed before it listened
            if not _is_taken(left):
                left.unlink(missing_ok=True)
    except OSError as error:
        raise SocketError(f"{error.filename or socket}: {error.strerror or error}") from error


def _answers(socket: Path, alive_seconds: float) -> bool:
    """Whether a gRPC server listens behind the socket and replies. A stopped process may accept connections, but does
    not reply.
    """
    if not _is_taken(socket):
        return False
    from chronolet.adapters.sockets import grpc_sockets  # noqa: PLC0415 - loads grpc

    return grpc_sockets.answers(str(socket), alive_seconds)


def _is_taken(socket: Path) -> bool:
    """Whether a process listens on the socket."""
    with stream_socket(AF_UNIX) as probe:
        # Do not wait if the queue of connections is full: in that case, a live process listens.
        probe.setblocking(False)
        return probe.connect_ex(str(socket)) not in (errno.ECONNREFUSED, errno.ENOENT)
