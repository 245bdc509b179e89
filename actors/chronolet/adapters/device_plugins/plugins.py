"""`DevicePlugins` over gRPC.

Comes in: folders, sockets, requests. Goes out: what plugins say, `PluginRefusal`. Next: the workers of devices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from chronolet.adapters.device_plugins import calls, lists, registry, wire
from chronolet.adapters.device_plugins.watcher import Watch
from chronolet.ports.device_plugins import Following, Register
from chronolet_schemas.devices import Answer, PluginOptions
from chronolet_schemas.protos import deviceplugin_pb2 as api


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long plugins may take, in seconds. The kubelet bounds the first and the last only."""

    connect: float = 10.0
    options: float = 10.0
    preferred: float = 10.0
    allocate: float = 60.0
    pre_start: float = 30.0


class GrpcDevicePlugins:
    """See `ports.device_plugins.DevicePlugins`."""

    def __init__(self, folder: Path, watched: Path, patience: Patience | None = None) -> None:
        self._folder = folder.absolute()
        self._watched = watched.absolute()
        self._patience = patience or Patience()
        self._streams = lists.Streams(self._patience.connect)

    def serve(self, register: Register, opened: Callable[[], None], stop: threading.Event) -> None:
        registry.serve(self._folder, register, opened, stop)

    def watch(self, register: Register, left: Callable[[str], None], stop: threading.Event) -> None:
        Watch(self._watched, register, left, stop).run()

    def options(self, socket: str) -> PluginOptions:
        # Some register a moment before they serve: theirs is no death, and no silence.
        return wire.options(calls.ask(socket, calls.OPTIONS, api.Empty(), self._patience.options, patient=True))

    def follow(self, socket: str, following: Following) -> Callable[[], None]:
        return self._streams.follow(socket, following)

    def preferred(self, socket: str, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        request = wire.preference(available, must_include, size)
        return wire.preferred(calls.ask(socket, calls.PREFERRED, request, self._patience.preferred))

    def allocate(self, socket: str, devices: Sequence[str]) -> Sequence[Answer]:
        return wire.answers(calls.ask(socket, calls.ALLOCATE, wire.allocation(devices), self._patience.allocate))

    def pre_start(self, socket: str, devices: Sequence[str]) -> None:
        calls.ask(socket, calls.PRE_START, api.PreStartContainerRequest(devices_ids=devices), self._patience.pre_start)
