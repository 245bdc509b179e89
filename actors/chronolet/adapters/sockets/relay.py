"""Connections to a socket, passed on byte by byte to a server that is started when the first one comes.

Comes in: a socket that listens, the path of the server, how it is started. Goes out: bytes, both ways. Next:
`unix_sockets`.

Whoever connects while the server is being started waits in the socket's queue; nobody is turned away.
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
"""Connections that wait while the server is being started: one process may register hundreds of resources at once."""
_CHUNK_BYTES = 65_536


class Relay:
    """Runs on a thread of its own while it is entered. `started` starts the server and returns what stops it."""

    def __init__(self, listener: stream_socket, server: Path, started: Callable[[], Callable[[], None]]) -> None:
        self.failed: Exception | None = None
        """Why connections cannot be taken, or the server could not be started or reached."""
        self._listener = listener
        self._server = str(server)
        self._started = started
        self._stop_server: Callable[[], None] = lambda: None
        self._starting: asyncio.Future[None] | None = None
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._meetings: set[object] = set()
        """The tasks of all connections. asyncio itself lets go of one whose client has sent everything."""
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(RuntimeError):  # it has failed, and its loop is closed
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._serve())
            except Exception as error:  # noqa: BLE001 - told to whoever runs this
                self.failed = error

    async def _serve(self) -> None:
        server = await asyncio.start_unix_server(self._met, sock=self._listener, backlog=BACKLOG)
        await self._over.wait()
        server.close()
        if self._starting is not None and await self._serves():
            await self._loop.run_in_executor(None, self._stop_server)

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._meetings.add(task)
        try:
            await self._relay(reader, writer)
        finally:
            self._meetings.discard(task)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until the server ends it or is gone."""
        with contextlib.suppress(OSError), contextlib.closing(writer):
            if not await self._serves():
                return
            try:
                answers, requests = await asyncio.open_unix_connection(self._server)
            except OSError as error:
                if not self._over.is_set():  # the server is gone by then, as it should be
                    self.failed = error
                return
            with contextlib.closing(requests):
                asking = asyncio.create_task(_pass_on(reader, requests))
                try:
                    await _pass_on(answers, writer)
                finally:
                    asking.cancel()

    def _start(self) -> None:
        self._stop_server = self._started()

    async def _serves(self) -> bool:
        """Whether the server is there; the first to ask starts it."""
        if self._starting is None:
            self._starting = self._loop.run_in_executor(None, self._start)
        try:
            await asyncio.shield(self._starting)
        except Exception as error:  # noqa: BLE001 - told to whoever runs this
            self.failed = error
            return False
        return True


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """All bytes, and then their end, also where the source is cut off: the target must not wait for more."""
    with contextlib.suppress(OSError):
        while chunk := await source.read(_CHUNK_BYTES):
            target.write(chunk)
            await target.drain()
    with contextlib.suppress(OSError):
        target.write_eof()
