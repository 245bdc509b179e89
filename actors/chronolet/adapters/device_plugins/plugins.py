"""`DevicePlugins` over gRPC, which is loaded only when the first plugin is used.

Input: folders, sockets, requests. Output: plugins' responses, `PluginRefusal`. Next: the workers of `devices`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chronolet.adapters.device_plugins import registry
from chronolet.adapters.device_plugins.timing import Patience
from chronolet.adapters.device_plugins.watcher import Watch
from chronolet.ports.devices.plugins import Following, Register
from chronolet_schemas.devices import Answer, PluginOptions

if TYPE_CHECKING:
    from chronolet.adapters.device_plugins.plugin_calls import PluginCalls


class GrpcDevicePlugins:
    """Implements `ports.devices.plugins.DevicePlugins`."""

    def __init__(self, folder: Path, watched: Path, patience: Patience | None = None) -> None:
        self._folder = folder.absolute()
        self._watched = watched.absolute()
        self._patience = patience or Patience()
        self._loading = threading.Lock()
        self._loaded: PluginCalls | None = None

    def serve(self, register: Register, opened: Callable[[], None], stop: threading.Event) -> None:
        registry.serve(self._folder, register, opened, stop, self._patience.sockets)

    def watch(self, register: Register, left: Callable[[str], None], stop: threading.Event) -> None:
        Watch(self._watched, register, left, stop, self._patience).run()

    def options(self, socket: str) -> PluginOptions:
        return self._calls.options(socket)

    def follow(self, socket: str, following: Following) -> Callable[[], None]:
        return self._calls.follow(socket, following)

    def preferred(self, socket: str, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        return self._calls.preferred(socket, available, must_include, size)

    def allocate(self, socket: str, devices: Sequence[str]) -> Sequence[Answer]:
        return self._calls.allocate(socket, devices)

    def pre_start(self, socket: str, devices: Sequence[str]) -> None:
        self._calls.pre_start(socket, devices)

    @property
    def _calls(self) -> PluginCalls:
        """The shared instance, which owns the thread that reads all streams."""
        from chronolet.adapters.device_plugins.plugin_calls import PluginCalls  # noqa: PLC0415 - loads grpc

        with self._loading:
            if self._loaded is None:
                self._loaded = PluginCalls(self._patience)
            return self._loaded
