"""gRPC on unix sockets: serving one whose path is ours, and channels that keep nothing of who served a path before.

Comes in: a path, handlers. Goes out: a server until its stop, a channel; `SocketError`. Next: `device_plugins`,
`pod_resources`. Importing it loads grpc.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from socket import AF_UNIX
from socket import socket as stream_socket
from typing import Final

import grpc
import grpc.aio

MOST_BYTES = 16 * 1024 * 1024
"""Of one message: a list of more than a hundred thousand devices."""
SLICE_SECONDS = 1.0
_LONGEST_PATH = 107
_ALIVE_SECONDS = 5.0
"""For a server that has no CPU to answer by; where nobody listens, nothing is waited for."""
_AT_ONCE = 8

_SERVER_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # two servers must never share a path in silence
    ("grpc.max_receive_message_length", MOST_BYTES),
)
_CHANNEL_OPTIONS: Final = (
    # Servers of the first days know no authority that is a path.
    ("grpc.default_authority", "localhost"),
    ("grpc.enable_http_proxy", 0),
    # A plugin that comes back at the same path is another one, and is not to wait for the failures of the one before.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.max_receive_message_length", MOST_BYTES),
)

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


@contextmanager
def channel(socket: str) -> Iterator[grpc.Channel]:
    """A connection of its own. SocketError where the path cannot be a socket's."""
    _check_length(socket)
    with grpc.insecure_channel(f"unix:{socket}", options=_CHANNEL_OPTIONS) as opened:
        yield opened


@asynccontextmanager
async def async_channel(socket: str) -> AsyncIterator[grpc.aio.Channel]:
    """The same for the event loop that this runs in."""
    _check_length(socket)
    async with grpc.aio.insecure_channel(f"unix:{socket}", options=_CHANNEL_OPTIONS) as opened:
        yield opened


def serve(
    socket: Path,
    handlers: Sequence[grpc.GenericRpcHandler],
    opened: Callable[[], None],
    stop: threading.Event,
    *,
    prepare: Callable[[], None] = lambda: None,
    most_calls: int = 64,
) -> None:
    """Make the socket anew and serve it until `stop`; `opened` is called each time that it listens, before the first
    call of anybody is handled, and `prepare` each time before the socket is made.

    `_AT_ONCE` calls are handled at a time, others wait; more than `most_calls` in all are refused.

    It is made anew, too, when somebody else has removed it. SocketError if that cannot be, or a living process serves
    it already: what a dead one left is removed.
    """
    while not stop.is_set():
        make_room(socket)
        prepare()
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=socket.name)
        server = grpc.server(pool, options=_SERVER_OPTIONS, maximum_concurrent_rpcs=most_calls)
        server.add_generic_rpc_handlers(handlers)
        try:
            server.add_insecure_port(f"unix:{socket}")
        except RuntimeError as error:
            raise SocketError(f"{socket}: cannot listen there: {error}") from error
        try:
            made = identity(socket)
            opened()
            server.start()
            while identity(socket) == made and not stop.wait(SLICE_SECONDS):
                pass
        finally:
            server.stop(grace=SLICE_SECONDS).wait()


def make_room(socket: Path) -> None:
    """The socket's folder is there, and its path is free. SocketError."""
    _check_length(str(socket))
    try:
        socket.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        if identity(socket) and _answers(socket):
            raise SocketError(f"{socket}: another process serves it; end it, or choose another folder")
        socket.unlink(missing_ok=True)
    except OSError as error:
        raise SocketError(f"{error.filename or socket}: {error.strerror or error}") from error


def _answers(socket: Path) -> bool:
    """Whether a gRPC server is alive behind it: one that was stopped, or is dead, accepts at most."""
    with stream_socket(AF_UNIX) as probe:
        # Not to wait at a full queue, which a living process has.
        probe.setblocking(False)
        if probe.connect_ex(str(socket)) in (errno.ECONNREFUSED, errno.ENOENT):
            return False
    with channel(str(socket)) as opened:
        try:
            grpc.channel_ready_future(opened).result(timeout=_ALIVE_SECONDS)
        except grpc.FutureTimeoutError:
            return False
    return True


def _check_length(socket: str) -> None:
    if len(os.fsencode(socket)) > _LONGEST_PATH:
        raise SocketError(f"{socket}: the path is longer than the {_LONGEST_PATH} bytes of a socket's")
