"""The registration socket, kubelet.sock, and the service behind it.

Comes in: Register calls of plugins. Goes out: `Registering`. Next: the worker of ServeRegistration. Answers to
pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go and manager.go (CleanupPluginDirectory).

Plugins watch for the socket to be made anew, and then register again. So what a kubelet removes when it starts is
removed: all sockets of the folder. A file DEPRECATION, which kubelets of 2018 put there to send plugins to another
folder, goes as well: plugins that know it would not register. All else (a kubelet's checkpoint) stays.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import grpc
import structlog

from chronolet.adapters import unix_sockets
from chronolet.adapters.device_plugins import wire
from chronolet.ports.device_plugins import PluginRefusal, Register
from chronolet_schemas.protos import deviceplugin_pb2 as api

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

    try:
        # Each time: many plugins watch their own socket only, and register again when it is removed.
        handlers = (_handlers(folder, register, stop),)
        unix_sockets.serve(socket, handlers, listening, stop, prepare=lambda: _clear(folder), most_calls=_MOST_CALLS)
    except unix_sockets.SocketError as error:
        raise PluginRefusal("failed", str(error)) from error


def _clear(folder: Path) -> None:
    for entry in os.scandir(folder):
        if entry.name == DEPRECATION or unix_sockets.identity(entry.path):
            Path(entry.path).unlink(missing_ok=True)


def _handlers(folder: Path, register: Register, stop: threading.Event) -> grpc.GenericRpcHandler:
    def handle(request: api.RegisterRequest, context: grpc.ServicerContext) -> api.Empty:
        if stop.is_set():
            context.abort(grpc.StatusCode.UNAVAILABLE, "the node is going: register again when its socket is new")
        problem = register(wire.registering(request, str(folder)))
        if problem:
            context.abort(grpc.StatusCode.UNKNOWN, problem)
        return api.Empty()

    handler = grpc.unary_unary_rpc_method_handler(handle, api.RegisterRequest.FromString, api.Empty.SerializeToString)
    return grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": handler})
