"""Unix sockets whose paths are ours, and gRPC servers behind them that are loaded when somebody connects.

Comes in: a path, and what makes handlers. Goes out: a server until its stop; `SocketError`. Next: `device_plugins`,
`pod_resources`; `relay`, which takes the connections; `grpc_sockets`, which answers them.

Most nodes have no device plugin, and grpc takes 25 MiB and a tenth of a second of CPU. So the path is listened at
without it. The socket stays the same when it is loaded, for plugins take a new one for a new kubelet.
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

from chronolet.adapters.sockets.relay import BACKLOG, Relay

if TYPE_CHECKING:
    import grpc

SLICE_SECONDS = 1.0
_LONGEST_PATH = 107
_INNER_NAME = ".grpc"
"""Next to the path: where the gRPC server itself listens."""
_NEW_PREFIX = ".new-"
"""Next to the path, with the process's number: the socket until it listens."""

Identity = tuple[int, int, int]
"""Device, inode and birth: numbers of inodes are soon used again."""


class SocketError(Exception):
    """A socket cannot be had; the message names it and says why."""


def identity(path: str | os.PathLike[str]) -> Identity | None:
    """Of the socket at this path; None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    # Not the time of change, which a change of rights moves too.
    return (found.st_dev, found.st_ino, found.st_mtime_ns) if stat.S_ISSOCK(found.st_mode) else None


def serve(
    socket: Path,
    handlers: Callable[[], Sequence[grpc.GenericRpcHandler]],
    opened: Callable[[], None],
    stop: threading.Event,
    *,
    prepare: Callable[[], None] = lambda: None,
    most_calls: int = 64,
) -> None:
    """Make the socket anew and serve it until `stop`; `opened` is called each time that it listens, before the first
    call of anybody is handled, and `prepare` each time before the socket is made. More than `most_calls` at a time are
    refused. `handlers` is called at the first connection.

    It is also made anew if another process removes it, and removed at the end. SocketError if it cannot be made,
    or a living process serves it already: what a dead one left is removed.
    """
    inner = socket.with_name(_INNER_NAME)

    def behind() -> Callable[[], None]:
        from chronolet.adapters.sockets import grpc_sockets  # noqa: PLC0415 - loads grpc

        inner.unlink(missing_ok=True)
        return grpc_sockets.started(inner, handlers(), most_calls)

    while not stop.is_set():
        make_room(socket)
        prepare()
        with _listening(socket) as (listener, made):
            opened()
            with Relay(listener, inner, behind) as relay:
                while identity(socket) == made and not relay.failed and not stop.wait(SLICE_SECONDS):
                    pass
        if relay.failed:
            raise SocketError(f"{socket}: nobody can be answered there: {relay.failed}") from relay.failed


@contextmanager
def _listening(socket: Path) -> Iterator[tuple[stream_socket, Identity | None]]:
    """The listening socket and its identity. Removed at the end, unless another process has replaced it.

    It appears at the path when it listens, for plugins connect as soon as they see it. A link, unlike a rename, fails
    where another process has been faster.
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
            raise SocketError(f"{socket}: cannot listen there: {error.strerror or error}") from error
        made = identity(socket)
        try:
            yield listener, made
        finally:
            if made and identity(socket) == made:
                with suppress(OSError):  # the next start removes it
                    socket.unlink()


def make_room(socket: Path) -> None:
    """The socket's folder is there, and its path is free. SocketError."""
    check_length(str(socket))
    try:
        socket.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        if identity(socket) and _answers(socket):
            raise SocketError(f"{socket}: another process serves it; end it, or choose another folder")
        socket.unlink(missing_ok=True)
        for left in socket.parent.glob(f"{_NEW_PREFIX}*"):  # by a process that was killed before it listened
            if not _is_taken(left):
                left.unlink(missing_ok=True)
    except OSError as error:
        raise SocketError(f"{error.filename or socket}: {error.strerror or error}") from error


def _answers(socket: Path) -> bool:
    """Whether a gRPC server is alive behind it: one that was stopped, or is dead, accepts at most."""
    if not _is_taken(socket):
        return False
    from chronolet.adapters.sockets import grpc_sockets  # noqa: PLC0415 - loads grpc

    return grpc_sockets.answers(str(socket))


def _is_taken(socket: Path) -> bool:
    """Whether a process listens there."""
    with stream_socket(AF_UNIX) as probe:
        # Not to wait at a full queue, which a living process has.
        probe.setblocking(False)
        return probe.connect_ex(str(socket)) not in (errno.ECONNREFUSED, errno.ENOENT)


def check_length(socket: str) -> None:
    """SocketError where no socket can have that path."""
    if len(os.fsencode(socket)) > _LONGEST_PATH:
        raise SocketError(f"{socket}: the path is longer than the {_LONGEST_PATH} bytes of a socket's")
