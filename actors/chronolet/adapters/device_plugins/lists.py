"""A plugin's ListAndWatch stream: what it lists is told at once, but not without measure.

Comes in: a socket. Goes out: `Listing`s, `PluginRefusal` at the end. Next: the worker of WatchDevices. Answers to
pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go (Run).

Each list is a whole one, so a newer one makes those before it worthless: of a plugin that floods, the latest is told
once a second, with the number of those that were not; the others are not even decoded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from chronolet.adapters import unix_sockets
from chronolet.adapters.device_plugins import calls, wire
from chronolet.ports.device_plugins import Listing, PluginRefusal
from chronolet_schemas.protos import deviceplugin_pb2 as api

AT_ONCE = 10
"""How many lists may come in quick succession before they are told once a second only."""


def follow(socket: str, listed: Callable[[Listing], None], stop: threading.Event, *, connect_seconds: float) -> None:
    """See `DevicePlugins.lists`. A plugin that does not listen yet is waited for, `connect_seconds` at most."""
    with calls.channel(socket) as channel:
        _connect(channel, socket, stop, connect_seconds)
        call: Any = channel.unary_stream(calls.LIST_AND_WATCH.path, api.Empty.SerializeToString)(api.Empty())
        latest = Latest()
        threading.Thread(target=_read, args=(call, latest), name=f"lists of {socket}", daemon=True).start()
        try:
            _tell(latest, listed, stop)
        finally:
            call.cancel()
        if not stop.is_set():
            raise latest.ended or PluginRefusal("away", "rpc error: code = Unknown desc = EOF")


def _connect(channel: grpc.Channel, socket: str, stop: threading.Event, seconds: float) -> None:
    ready = grpc.channel_ready_future(channel)
    until = time.monotonic() + seconds
    while not stop.is_set():
        try:
            ready.result(timeout=min(unix_sockets.SLICE_SECONDS, max(until - time.monotonic(), 0.0)))
        except grpc.FutureTimeoutError:
            if time.monotonic() >= until:
                ready.cancel()
                raise PluginRefusal("late", f"{socket}: nobody answered within {seconds:g} s") from None
        else:
            return
    ready.cancel()


class Latest:
    """The newest list that came, not decoded yet, and how many have come in vain since one was taken."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._raw: bytes | None = None
        self._skipped = 0
        self._over = False
        self.ended: PluginRefusal | None = None

    def put(self, raw: bytes) -> None:
        """A list came."""
        with self._news:
            self._skipped += self._raw is not None
            self._raw = raw
            self._news.notify()

    def end(self, why: PluginRefusal | None) -> None:
        """No more will come."""
        with self._news:
            self._over, self.ended = True, why
            self._news.notify()

    @property
    def over(self) -> bool:
        """Nothing is left to take, and nothing will come."""
        with self._news:
            return self._over and self._raw is None

    def take(self, seconds: float) -> tuple[bytes, int] | None:
        """The newest list and how many were skipped for it; None if none came in that time."""
        with self._news:
            if self._raw is None and not self._over:
                self._news.wait(seconds)
            if self._raw is None:
                return None
            taken = self._raw, self._skipped
            self._raw, self._skipped = None, 0
            return taken


class Measure:
    """Lets a few pass at once, and then one a second."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._most = at_once
        self._left = float(at_once)
        self._at = time.monotonic()

    def wait_seconds(self) -> float:
        """How long the next one has to wait; it counts as passed."""
        now = time.monotonic()
        self._left = min(self._left + now - self._at, self._most) - 1
        self._at = now
        return max(-self._left, 0.0)


def _tell(latest: Latest, listed: Callable[[Listing], None], stop: threading.Event) -> None:
    measure, waits = Measure(), 0.0
    while not stop.is_set() and not latest.over:
        if waits and stop.wait(waits):
            return
        waits = 0.0
        taken = latest.take(unix_sockets.SLICE_SECONDS)
        if taken is not None:
            raw, skipped = taken
            listed(Listing(devices=_decoded(raw), skipped=skipped))
            waits = measure.wait_seconds()


def _decoded(raw: bytes) -> Any:
    try:
        return wire.devices(calls.LIST_AND_WATCH.read(raw))
    except DecodeError as error:
        raise PluginRefusal("failed", f"a list that cannot be read: {error}") from error


def _read(call: Any, latest: Latest) -> None:
    try:
        for raw in call:
            latest.put(raw)
    except grpc.RpcError as error:
        latest.end(calls.refusal(error))
    else:
        latest.end(None)
