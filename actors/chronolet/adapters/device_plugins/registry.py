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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import structlog

from chronolet.adapters.device_plugins import calls, wire
from chronolet.adapters.device_plugins.sockets import identity
from chronolet.ports.device_plugins import PluginRefusal, Register
from chronolet_schemas.protos import deviceplugin_pb2 as api

log = structlog.get_logger("chronolet.devices")

NAME = "kubelet.sock"
DEPRECATION = "DEPRECATION"
_AT_ONCE = 8
_SLICE_SECONDS = 1.0
_ALIVE_SECONDS = 0.5


def serve(folder: Path, register: Register, opened: Callable[[], None], stop: threading.Event) -> None:
    """See `DevicePlugins.serve`. Made anew, too, when somebody else has removed the socket."""
    socket = folder / NAME
    while not stop.is_set():
        _make_room(folder)
        server = _server(folder, socket, register, stop)
        try:
            made = identity(socket)
            opened()
            log.info("device plugins may register", socket=str(socket))
            while not stop.wait(_SLICE_SECONDS):
                if identity(socket) != made:
                    log.warning("the registration socket was removed; making it anew", socket=str(socket))
                    break
        finally:
            server.stop(grace=_SLICE_SECONDS).wait()


def _make_room(folder: Path) -> None:
    """Folder and path are ours. PluginRefusal if another process serves the socket, or the folder cannot be used."""
    socket = folder / NAME
    if len(os.fsencode(socket)) > calls.LONGEST_SOCKET:
        raise PluginRefusal(
            "failed", f"{socket}: the path is longer than the {calls.LONGEST_SOCKET} bytes of a socket's"
        )
    try:
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        if identity(socket) and _answers(socket):
            raise PluginRefusal(
                "taken", f"{socket}: another process serves it; end it, or choose another folder for device plugins"
            )
        for entry in os.scandir(folder):
            if entry.name == DEPRECATION or identity(entry.path):
                Path(entry.path).unlink(missing_ok=True)
    except OSError as error:
        raise PluginRefusal("failed", f"{error.filename or folder}: {error.strerror or error}") from error


def _answers(socket: Path) -> bool:
    """Whether a gRPC server is alive behind it: one that was stopped, or is dead, accepts at most."""
    with calls.channel(str(socket)) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_ALIVE_SECONDS)
        except grpc.FutureTimeoutError:
            return False
    return True


def _server(folder: Path, socket: Path, register: Register, stop: threading.Event) -> grpc.Server:
    # Without reuse of ports: two servers must never share the path in silence.
    server = grpc.server(
        ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="register"),
        options=(("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", calls.MOST_BYTES)),
    )

    def handle(request: api.RegisterRequest, context: grpc.ServicerContext) -> api.Empty:
        if stop.is_set():
            context.abort(grpc.StatusCode.UNAVAILABLE, "the node is going: register again when its socket is new")
        problem = register(wire.registering(request, str(folder)))
        if problem:
            context.abort(grpc.StatusCode.UNKNOWN, problem)
        return api.Empty()

    handler = grpc.unary_unary_rpc_method_handler(handle, api.RegisterRequest.FromString, api.Empty.SerializeToString)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": handler}),)
    )
    try:
        server.add_insecure_port(f"unix:{socket}")
    except RuntimeError as error:
        raise PluginRefusal("failed", f"{socket}: cannot listen there: {error}") from error
    server.start()
    return server
