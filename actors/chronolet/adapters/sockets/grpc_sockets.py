"""gRPC on unix sockets: a server at a path, and channels that do not inherit state from an earlier server at the same
path.

Input: a path, handlers. Output: a server that runs until it is stopped, a channel; `SocketError`. Next:
`device_plugins`, `pod_resources`; `unix_sockets`, which imports this module when the first client connects. The import
loads grpc: 25 MiB, 0.1 s.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import grpc
import grpc.aio

from chronolet.adapters.sockets.paths import SocketError, check_length

MOST_BYTES = 16 * 1024 * 1024
"""Maximum size of a message: enough for a list of more than a hundred thousand devices."""
_CONCURRENT_CALLS = 8

_SERVER_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # two servers must never silently share a path
    ("grpc.max_receive_message_length", MOST_BYTES),
)
_CHANNEL_OPTIONS: Final = (
    # Old gRPC servers reject an authority that is a path.
    ("grpc.default_authority", "localhost"),
    ("grpc.enable_http_proxy", 0),
    # A plugin that comes back at the same path is a new process and must not inherit its predecessor's back-off.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.max_receive_message_length", MOST_BYTES),
)


@contextmanager
def channel(socket: str) -> Iterator[grpc.Channel]:
    """Yield a channel that shares no connection or back-off with other channels to this path; close it after the block.
    Raises SocketError if the path is too long for a socket.
    """
    check_length(socket)
    with grpc.insecure_channel(f"unix:{socket}", options=_CHANNEL_OPTIONS) as opened:
        yield opened


@asynccontextmanager
async def async_channel(socket: str) -> AsyncIterator[grpc.aio.Channel]:
    """Yield a channel like that of `channel`, for use in the running event loop."""
    check_length(socket)
    async with grpc.aio.insecure_channel(f"unix:{socket}", options=_CHANNEL_OPTIONS) as opened:
        yield opened


def started(
    socket: Path, handlers: Sequence[grpc.GenericRpcHandler], most_calls: int, grace_seconds: float
) -> Callable[[], None]:
    """Serve on a path that must be free; return a function that stops the server and gives running calls
    `grace_seconds` to finish. At most `_CONCURRENT_CALLS` calls run concurrently, and others wait; calls beyond
    `most_calls` in total are refused. Raises SocketError.
    """
    pool = ThreadPoolExecutor(_CONCURRENT_CALLS, thread_name_prefix=socket.name)
    server = grpc.server(pool, options=_SERVER_OPTIONS, maximum_concurrent_rpcs=most_calls)
    server.add_generic_rpc_handlers(handlers)
    try:
        server.add_insecure_port(f"unix:{socket}")
    except RuntimeError as error:
        raise SocketError(f"{socket}: cannot listen: {error}") from error
    server.start()

    def stop() -> None:
        server.stop(grace=grace_seconds).wait()

    return stop


def answers(socket: str, seconds: float) -> bool:
    """Whether a gRPC server replies in time at a path on which a process listens. A stopped process may still accept
    connections, but does not reply.
    """
    with channel(socket) as opened:
        try:
            grpc.channel_ready_future(opened).result(timeout=seconds)
        except grpc.FutureTimeoutError:
            return False
    return True
