"""Calls to plugins over gRPC.

Input: sockets, requests. Output: plugins' responses, `PluginRefusal`. Next: `plugins`, which imports this module when
it first calls a plugin. Importing it loads grpc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chronolet.adapters.device_plugins import calls, lists, wire
from chronolet.adapters.device_plugins.timing import Patience
from chronolet.ports.devices.plugins import Following
from chronolet_schemas.devices import Answer, PluginOptions
from chronolet_schemas.protos import deviceplugin_pb2 as api


class PluginCalls:
    """The part of `ports.devices.plugins.DevicePlugins` that calls plugins."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._streams = lists.Streams(patience.connect)

    def options(self, socket: str) -> PluginOptions:
        # Patient, because some plugins register a moment before they start serving, which is not a failure.
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
