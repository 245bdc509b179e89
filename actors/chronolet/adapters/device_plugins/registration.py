"""The gRPC service behind the registration socket.

Input: Register calls from plugins. Output: `Registering`, passed to `register`. Next: `devices.registrar`. Called by
`registry`, which imports this module only when the first plugin connects, because it loads grpc. Corresponds to
pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go.
"""

from __future__ import annotations

import threading
from pathlib import Path

import grpc

from chronolet.adapters.device_plugins import wire
from chronolet.ports.devices.plugins import Register
from chronolet_schemas.protos import deviceplugin_pb2 as api


def handler(folder: Path, register: Register, stop: threading.Event) -> grpc.GenericRpcHandler:
    """Return the gRPC handler of the service. Calls after `stop` is set are refused, so that the plugin retries."""

    def handle(request: api.RegisterRequest, context: grpc.ServicerContext) -> api.Empty:
        if stop.is_set():
            context.abort(grpc.StatusCode.UNAVAILABLE, "shutting down: register again when the socket is recreated")
        problem = register(wire.registering(request, str(folder)))
        if problem:
            context.abort(grpc.StatusCode.UNKNOWN, problem)
        return api.Empty()

    method = grpc.unary_unary_rpc_method_handler(handle, api.RegisterRequest.FromString, api.Empty.SerializeToString)
    return grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": method})
