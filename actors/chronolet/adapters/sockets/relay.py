"""Accept connections on a socket and relay them, byte by byte, to a server that is started when the first client
connects.

Input: a listening socket, the server's path, a function that starts the server. Output: bytes in both directions. Next:
`unix_sockets`.

Clients that connect while the server is starting wait in the socket's queue; none of them is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from socket import socket as stream_socket
from typing import Self

BACKLOG = 1024
"""Number of connections that may wait while the server is starting: one process may register hundreds of resources in a
burst.
"""
_CHUNK_BYTES = 65_536


class Relay:
    """A context manager that relays on a separate thread. `started` starts the server and returns the function that
    stops it.
    """

    def __init__(self, listener: stream_socket, server: Path, started: Callable[[], Callable[[], None]]) -> None:
        self.failed: Exception | None = None
        """Why connections cannot be accepted, or why the server could not be started or reached."""
        self._listener = listener
        self._server = str(server)
        self._started = started
        self._stop_server: Callable[[], None] = lambda: None
        self._starting: asyncio.Future[None] | None = None
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._tasks: set[object] = set()
        """The tasks of all connections. asyncio itself does not hold a reference to a task whose client has sent
        everything.
        """
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the relay has failed, and its loop is closed
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._serve())
            except Exception as error:  # noqa: BLE001 - reported through `failed`
                self.failed = error

    async def _serve(self) -> None:
        server = await asyncio.start_unix_server(self._accepted, sock=self._listener, backlog=BACKLOG)
        await self._over.wait()
        server.close()
        if self._starting is not None and await self._serves():
            await self._loop.run_in_executor(None, self._stop_server)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            await self._relay(reader, writer)
        except asyncio.CancelledError:
            pass  # the relay is being stopped; Python 3.11 would log the cancellation as an error
        finally:
            self._tasks.discard(task)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection until the server closes it or is gone."""
        with contextlib.suppress(OSError), contextlib.closing(writer):
            if not await self._serves():
                return
            try:
                answers, requests = await asyncio.open_unix_connection(self._server)
            except OSError as error:
                if not self._over.is_set():  # once the relay is being stopped, the server is expected to be gone
                    self.failed = error
                return
            with contextlib.closing(requests):
                asking = asyncio.create_task(_copy(reader, requests))
                try:
                    await _copy(answers, writer)
                finally:
                    asking.cancel()

    def _start(self) -> None:
        self._stop_server = self._started()

    async def _serves(self) -> bool:
        """Whether the server is running. The first call starts it."""
        if self._starting is None:
            self._starting = self._loop.run_in_executor(None, self._start)
        try:
            await asyncio.shield(self._starting)
        except Exception as error:  # noqa: BLE001 - reported through `failed`
            self.failed = error
            return False
        return True


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy all bytes, then signal the end of the stream, even if the source was cut off: the target must not wait for
    more.
    """
    with contextlib.suppress(OSError):
        while chunk := await source.read(_CHUNK_BYTES):
            target.write(chunk)
            await target.drain()
    with contextlib.suppress(OSError):
        target.write_eof()
