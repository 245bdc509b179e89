"""Life cycle of a fake plugin: serve its socket and register; do both again whenever the node recreates kubelet.sock.

Input: a service, folders. Output: sockets. Next: `main`.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from chronolet_sample_plugin.service import Service, print_line
from chronolet_schemas.protos import deviceplugin_pb2 as api
from chronolet_schemas.protos import pluginregistration_pb2 as registration

_LOOK_SECONDS = 0.1
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True)
class Discovery:
    """How a plugin is discovered. `watched`: the node finds its socket in a watched folder, so it does not register."""

    folder: Path
    socket: str
    watched: bool = False
    version: str = "v1beta1"
    endpoint: str = ""
    """The socket name to register, if it differs from the real one."""
    sends_options: bool = True


class Life:
    """The plugin of one resource."""

    def __init__(self, service: Service, discovery: Discovery) -> None:
        self._service = service
        self._discovery = discovery
        self._node = discovery.folder / "kubelet.sock"
        self._server: grpc.Server | None = None
        self.over = threading.Event()

    def run(self) -> str:
        """Run until `over` is set or the node refuses the plugin's registration; return why the node refused the
        plugin, or an empty string.
        """
        try:
            while not self._discovery.folder.is_dir() and not self.over.wait(_LOOK_SECONDS):
                pass  # no kubelet has run on this machine yet
            while not self.over.is_set():
                seen = _identity(self._node)
                self._serve()
                if self._discovery.watched:
                    self.over.wait()
                elif seen is not None and (refused := self._register()):
                    return refused
                self._wait_for_another(seen)
        finally:
            self._stop()
        return self._service.refused

    def _serve(self) -> None:
        self._stop()
        path = self._discovery.folder / self._discovery.socket
        path.unlink(missing_ok=True)
        server = grpc.server(ThreadPoolExecutor(16))
        server.add_generic_rpc_handlers(_handlers(self._service))
        server.add_insecure_port(f"unix:{path}")
        server.start()
        self._server = server
        print_line(self._service.resource, "serves", path)

    def _stop(self) -> None:
        if self._server is not None:
            self._server.stop(grace=None).wait()
            self._server = None

    def _register(self) -> str:
        """Register; return why the node refused the plugin, or an empty string. Retry for `_PATIENCE_SECONDS` while the
        node is unavailable, unless `over` is set.
        """
        discovery, service = self._discovery, self._service
        request = api.RegisterRequest(
            version=discovery.version,
            endpoint=discovery.endpoint or discovery.socket,
            resource_name=service.resource,
            options=service.behaviour.options() if discovery.sends_options else None,
        )
        until = time.monotonic() + _PATIENCE_SECONDS
        with grpc.insecure_channel(f"unix:{self._node}") as channel:
            call = channel.unary_unary(
                "/v1beta1.Registration/Register", api.RegisterRequest.SerializeToString, api.Empty.FromString
            )
            while not self.over.is_set():
                try:
                    call(request, timeout=_PATIENCE_SECONDS, wait_for_ready=False)
                except grpc.RpcError as error:
                    code = error.code() if isinstance(error, grpc.Call) else None
                    if code is not grpc.StatusCode.UNAVAILABLE or time.monotonic() > until:
                        details = error.details() if isinstance(error, grpc.Call) else error
                        print_line(service.resource, "refused:", details)
                        return str(details)
                    self.over.wait(_LOOK_SECONDS)
                else:
                    print_line(service.resource, "registered")
                    return ""
        return ""

    def _wait_for_another(self, seen: tuple[int, int] | None) -> None:
        """Wait until the node's socket has been replaced, or `over` is set."""
        while not self.over.wait(_LOOK_SECONDS):
            found = _identity(self._node)
            if found is not None and found != seen:
                print_line(self._service.resource, "sees a new kubelet.sock")
                return


def _identity(path: Path) -> tuple[int, int] | None:
    """Return values that identify the file at a path; an inode number alone may soon be reused. None if there is no
    file.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _handlers(service: Service) -> tuple[grpc.GenericRpcHandler, ...]:
    def one(name: str, asked: Any, answered: Any) -> Any:
        make = grpc.unary_stream_rpc_method_handler if name == "ListAndWatch" else grpc.unary_unary_rpc_method_handler
        return make(getattr(service, name), asked.FromString, answered.SerializeToString)

    plugin = {
        "GetDevicePluginOptions": one("GetDevicePluginOptions", api.Empty, api.DevicePluginOptions),
        "ListAndWatch": one("ListAndWatch", api.Empty, api.ListAndWatchResponse),
        "GetPreferredAllocation": one(
            "GetPreferredAllocation", api.PreferredAllocationRequest, api.PreferredAllocationResponse
        ),
        "Allocate": one("Allocate", api.AllocateRequest, api.AllocateResponse),
        "PreStartContainer": one("PreStartContainer", api.PreStartContainerRequest, api.PreStartContainerResponse),
    }
    found = {
        "GetInfo": one("GetInfo", registration.InfoRequest, registration.PluginInfo),
        "NotifyRegistrationStatus": one(
            "NotifyRegistrationStatus", registration.RegistrationStatus, registration.RegistrationStatusResponse
        ),
    }
    return (
        grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", plugin),
        grpc.method_handlers_generic_handler("pluginregistration.Registration", found),
    )
