"""PodResources v1 on a unix socket, and v1alpha1 for monitoring agents from before 2021.

Input: a function that returns the node's resources. Output: a gRPC server. Next: `service`, which answers monitoring
agents.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from chronolet.adapters.sockets import unix_sockets
from chronolet.ports.devices.pod_resources import Counted, NodeResources

if TYPE_CHECKING:
    import grpc

log = structlog.get_logger("chronolet.devices")

NAME = "kubelet.sock"


class GrpcPodResources:
    """Implements `ports.devices.pod_resources.PodResourcesServer`. `view` is called for each request."""

    def __init__(
        self,
        folder: Path,
        view: Callable[[], NodeResources],
        counted: Counted,
        timing: unix_sockets.Timing = unix_sockets.DEFAULT_TIMING,
    ) -> None:
        self._timing = timing
        self._socket = folder.absolute() / NAME
        self._view = view
        self._counted = counted

    def serve(self, stop: threading.Event) -> None:
        """Serve until `stop` is set. Raises SocketError."""
        opened = lambda: log.info("serving PodResources", socket=str(self._socket))  # noqa: E731 - one short line
        unix_sockets.serve(self._socket, self._handlers, opened, stop, timing=self._timing)

    def _handlers(self) -> Sequence[grpc.GenericRpcHandler]:
        from chronolet.adapters.pod_resources.service import Service  # noqa: PLC0415 - loads grpc

        return Service(self._view, self._counted).handlers()
