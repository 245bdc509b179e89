"""Plugins' ListAndWatch streams, read on one thread: lists are reported immediately, but at a bounded rate.

Input: sockets. Output: `Listing`s, and a `PluginRefusal` when a stream ends. Next: the effect WatchDevices. Corresponds
to pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go (Run).

Each list is complete, so a newer one supersedes the earlier ones. If a plugin sends too many, only its latest list is
reported each second, with the number of skipped lists. Skipped lists are not decoded.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from chronolet.adapters.device_plugins import calls, wire
from chronolet.adapters.sockets import grpc_sockets
from chronolet.adapters.sockets.paths import SocketError
from chronolet.ports.devices.plugins import Following, Listing, PluginRefusal
from chronolet_schemas.protos import deviceplugin_pb2 as api

BURST = 10
"""Number of lists that are reported without delay in a burst; further ones are reported once a second."""
_ASK_AGAIN_SECONDS = 0.2


class Streams:
    """The streams of all plugins. Their thread starts with the first stream and exists for the life of the process.
    `connect_seconds`: how long to wait for a plugin that is not listening yet.
    """

    def __init__(self, connect_seconds: float) -> None:
        self._connect_seconds = connect_seconds
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def follow(self, socket: str, following: Following) -> Callable[[], None]:
        """See `DevicePlugins.follow`."""
        work = _Stream(socket, following, self._connect_seconds).run()
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        return lambda: _end(future)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="device plugins", daemon=True).start()
            return self._loop


def _end(future: Future[None]) -> None:
    future.cancel()


class _Stream:
    """One stream of device lists, from connecting until it ends."""

    def __init__(self, socket: str, following: Following, connect_seconds: float) -> None:
        self._socket = socket
        self._following = following
        self._connect_seconds = connect_seconds
        self._news = asyncio.Event()
        self._raw: bytes | None = None
        self._skipped = 0
        self._over = False

    async def run(self) -> None:
        """Read the stream until it ends or is cancelled; report the end unless it was cancelled."""
        try:
            ended = await self._followed()
        except Exception as error:  # noqa: BLE001 - the effect's supervisor handles any error
            self._following.failed(error)
        else:
            self._following.ended(ended)

    async def _followed(self) -> PluginRefusal:
        await self._allowed()
        try:
            async with grpc_sockets.async_channel(self._socket) as channel:
                await self._connected(channel)
                await self._listed(channel)
        except PluginRefusal as refusal:
            return refusal
        except SocketError as error:
            return PluginRefusal("failed", str(error))
        except grpc.RpcError as error:
            return calls.refusal(error)
        return PluginRefusal("away", "rpc error: code = Unknown desc = EOF")

    async def _allowed(self) -> None:
        while True:
            if self._following.may():
                return
            await asyncio.sleep(_ASK_AGAIN_SECONDS)

    async def _connected(self, channel: grpc.aio.Channel) -> None:
        seconds = self._connect_seconds
        try:
            await asyncio.wait_for(channel.channel_ready(), seconds)
        except TimeoutError:
            raise PluginRefusal("late", f"{self._socket}: no answer within {seconds:g} s") from None

    async def _listed(self, channel: grpc.aio.Channel) -> None:
        method: Any = channel.unary_stream(calls.LIST_AND_WATCH.path, api.Empty.SerializeToString)
        call = method(api.Empty())
        reading = asyncio.create_task(self._read(call))
        try:
            await self._report()
            await reading
        finally:
            reading.cancel()
            call.cancel()

    async def _read(self, call: Any) -> None:
        try:
            async for raw in call:
                self._skipped += self._raw is not None
                self._raw = raw
                self._news.set()
        finally:
            self._over = True
            self._news.set()

    async def _report(self) -> None:
        """Report the newest list as soon as the rate allows, until the last list has been reported."""
        rate = Rate()
        while True:
            await self._news.wait()
            self._news.clear()
            if self._raw is not None:
                raw, skipped = self._raw, self._skipped
                self._raw, self._skipped = None, 0
                self._following.listed(Listing(devices=_decoded(raw), skipped=skipped))
                await asyncio.sleep(rate.wait_seconds())
            if self._over and self._raw is None:
                return
            if self._over or self._raw is not None:
                self._news.set()


class Rate:
    """Rate limit: a burst of `burst` items, then one per second."""

    def __init__(self, burst: int = BURST) -> None:
        self._most = burst
        self._left = float(burst)
        self._at = time.monotonic()

    def wait_seconds(self) -> float:
        """Count one item and return how long it has to wait."""
        now = time.monotonic()
        self._left = min(self._left + now - self._at, self._most) - 1
        self._at = now
        return max(-self._left, 0.0)


def _decoded(raw: bytes) -> Any:
    try:
        return wire.devices(calls.LIST_AND_WATCH.read(raw))
    except DecodeError as error:
        raise PluginRefusal("failed", f"malformed device list: {error}") from error
