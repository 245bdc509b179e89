"""The registration socket, kubelet.sock.

Input: connections from plugins. Output: `Registering`. Next: `registration`, the service behind the socket; the worker
of ServeRegistration. Corresponds to pkg/kubelet/cm/devicemanager/plugin/v1beta1/manager.go (CleanupPluginDirectory).

Plugins watch for the socket to be recreated and then register again. Therefore, like a starting kubelet, `serve`
removes all sockets in the folder. It also removes the file DEPRECATION, which kubelets from 2018 created to send
plugins to another folder: a plugin that looks for that file would not register here. It leaves all other files (such as
a kubelet's checkpoint) in place.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from chronolet.adapters.sockets import paths, unix_sockets
from chronolet.ports.devices.plugins import PluginRefusal, Register

if TYPE_CHECKING:
    import grpc

log = structlog.get_logger("chronolet.devices")

NAME = "kubelet.sock"
DEPRECATION = "DEPRECATION"
_MOST_CALLS = 1024
"""Maximum number of concurrent Register calls: one process may register hundreds of resources in a burst."""


def serve(
    folder: Path, register: Register, opened: Callable[[], None], stop: threading.Event, timing: unix_sockets.Timing
) -> None:
    """See `DevicePlugins.serve`."""
    socket = folder / NAME

    def listening() -> None:
        log.info("accepting device plugin registrations", socket=str(socket))
        opened()

    def handlers() -> Sequence[grpc.GenericRpcHandler]:
        from chronolet.adapters.device_plugins import registration  # noqa: PLC0415 - loads grpc

        return (registration.handler(folder, register, stop),)

    try:
        # Clear the folder each time: many plugins watch only their own socket, and register again when it is removed.
        unix_sockets.serve(
            socket,
            handlers,
            listening,
            stop,
            prepare=lambda: _clear(folder),
            most_calls=_MOST_CALLS,
            timing=timing,
        )
    except paths.SocketError as error:
        raise PluginRefusal("failed", str(error)) from error


def _clear(folder: Path) -> None:
    for entry in os.scandir(folder):
        if entry.name == DEPRECATION or unix_sockets.identity(entry.path):
            Path(entry.path).unlink(missing_ok=True)
