"""Listen on unix sockets, and load the gRPC servers behind them when a client connects.

Input: a path, and a factory for handlers. Output: a server that runs until stopped; `SocketError`. Next:
`device_plugins`, `pod_resources`; `relay`, which accepts the connections; `grpc_sockets`, which answers them.

Most nodes have no device plugin, and grpc takes 25 MiB and a tenth of a second of CPU, so the path is served without it
until needed. The socket stays the same when grpc is loaded, since plugins take a new socket for a restarted kubelet.
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
"""Name next to the path, where the gRPC server itself listens."""
_NEW_PREFIX = ".new-"
"""Name next to the path, followed by the process id, of a socket that does not listen yet."""

Identity = tuple[int, int, int]
"""Device, inode and modification time: inode numbers alone are soon reused."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals of a served socket.

    `check_seconds`: how often it is checked that the socket is still at its path. `grace_seconds`: how long running
    calls may take after the stop. `alive_seconds`: how long a server that is starved of CPU may take to answer; a path
    without a listener fails immediately.
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
    # Not ctime, which a change of permissions updates too.
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
    """Recreate the socket and serve it until `stop`. `opened` is called each time it listens, before the first call is
    handled, and `prepare` each time before it is created. More than `most_calls` concurrent calls are refused.
    `handlers` is called at the first connection.

    The socket is also recreated if another process removes it, and removed at the end. Raises SocketError if it cannot
    be created or a live process already serves it; the leftovers of dead processes are removed.
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
    """Yield the listening socket and its identity. Removed at the end, unless another process has replaced it.

    It appears at the path only once it listens, because plugins connect as soon as they see it. Unlike a rename, a link
    fails if another process was faster.
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
                with suppress(OSError):  # the next start removes it
                    socket.unlink()


def make_room(socket: Path, alive_seconds: float) -> None:
    """Create the socket's folder and free its path. Raises SocketError."""
    check_length(str(socket))
    try:
        socket.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        if identity(socket) and _answers(socket, alive_seconds):
            raise SocketError(f"{socket}: another process serves it; end it, or choose another folder")
        socket.unlink(missing_ok=True)
        for left in socket.parent.glob(f"{_NEW_PREFIX}*"):  # from a process that was killed before it listened
            if not _is_taken(left):
                left.unlink(missing_ok=True)
    except OSError as error:
        raise SocketError(f"{error.filename or socket}: {error.strerror or error}") from error


def _answers(socket: Path, alive_seconds: float) -> bool:
    """Whether a live gRPC server is behind the socket: a stopped or dead one at most accepts connections."""
    if not _is_taken(socket):
        return False
    from chronolet.adapters.sockets import grpc_sockets  # noqa: PLC0415 - loads grpc

    return grpc_sockets.answers(str(socket), alive_seconds)


def _is_taken(socket: Path) -> bool:
    """Whether a process listens on the socket."""
    with stream_socket(AF_UNIX) as probe:
        # Do not wait at a full queue: it belongs to a live process.
        probe.setblocking(False)
        return probe.connect_ex(str(socket)) not in (errno.ECONNREFUSED, errno.ENOENT)
