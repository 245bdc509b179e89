"""The registration socket, kubelet.sock.

Comes in: connections of plugins. Goes out: `Registering`. Next: `registration`, the service behind it; the worker of
ServeRegistration. Answers to pkg/kubelet/cm/devicemanager/plugin/v1beta1/manager.go (CleanupPluginDirectory).

Plugins watch for the socket to be made anew, and then register again. So what a kubelet removes when it starts is
removed: all sockets of the folder. A file DEPRECATION, which kubelets of 2018 put there to send plugins to another
folder, goes as well: plugins that know it would not register. All else (a kubelet's checkpoint) stays.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from chronolet.adapters.sockets import unix_sockets
from chronolet.ports.devices.plugins import PluginRefusal, Register

if TYPE_CHECKING:
    import grpc

log = structlog.get_logger("chronolet.devices")

NAME = "kubelet.sock"
DEPRECATION = "DEPRECATION"
_MOST_CALLS = 1024
"""Register calls at a time: one process may register hundreds of resources at once."""


def serve(folder: Path, register: Register, opened: Callable[[], None], stop: threading.Event) -> None:
    """See `DevicePlugins.serve`."""
    socket = folder / NAME

    def listening() -> None:
        log.info("device plugins may register", socket=str(socket))
        opened()

    def handlers() -> Sequence[grpc.GenericRpcHandler]:
        from chronolet.adapters.device_plugins import registration  # noqa: PLC0415 - loads grpc

        return (registration.handler(folder, register, stop),)

    try:
        # Each time: many plugins watch their own socket only, and register again when it is removed.
        unix_sockets.serve(socket, handlers, listening, stop, prepare=lambda: _clear(folder), most_calls=_MOST_CALLS)
    except unix_sockets.SocketError as error:
        raise PluginRefusal("failed", str(error)) from error


def _clear(folder: Path) -> None:
    for entry in os.scandir(folder):
        if entry.name == DEPRECATION or unix_sockets.identity(entry.path):
            Path(entry.path).unlink(missing_ok=True)
