"""The gRPC service of one resource.

Input: calls from a node. Output: responses, and a line on standard output for each call. Next: `life`.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import grpc

from chronolet_sample_plugin.behaviour import AllocateTemplate, Behaviour
from chronolet_sample_plugin.devices import Devices, preferred
from chronolet_schemas.protos import deviceplugin_pb2 as api
from chronolet_schemas.protos import pluginregistration_pb2 as registration

_SLICE_SECONDS = 0.2


def print_line(*words: object) -> None:
    """Write one line to standard output, unbuffered."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


@dataclass
class Service:
    """The gRPC service of one resource. `status_known` is set once the node has reported a discovered plugin's
    registration status.
    """

    resource: str
    devices: Devices
    behaviour: Behaviour
    template: AllocateTemplate
    versions: tuple[str, ...] = ("v1beta1",)
    status_known: threading.Event = field(default_factory=threading.Event)
    refused: str = ""
    _flood: int = 0

    @property
    def variable(self) -> str:
        """The environment variable that lists a container's devices, such as EXAMPLE_COM_THING."""
        return re.sub(r"[^A-Z0-9]+", "_", self.resource.upper())

    def flood(self, count: int) -> None:
        """Send `count` lists as fast as possible, each different from the previous one."""
        with self.devices.news:
            self._flood += count
            self.devices.news.notify_all()

    # -- calls -----------------------------------------------------------------------------------------------------

    def GetDevicePluginOptions(self, _: api.Empty, context: Any) -> api.DevicePluginOptions:  # noqa: N802
        """Return which optional calls the node should make."""
        self._begin("options", context)
        if not self.behaviour.sends_options_on_request:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown method GetDevicePluginOptions")
        return self.behaviour.options()

    def ListAndWatch(self, _: api.Empty, context: Any) -> Iterator[api.ListAndWatchResponse]:  # noqa: N802
        """Send the list, and again after each change, until the node or the plugin ends the call."""
        context.add_callback(lambda: print_line(self.resource, "list is over"))
        self._begin("list", context)
        sent = -1
        while context.is_active():
            with self.devices.news:
                if sent == self.devices.changes and not self._flood:
                    self.devices.news.wait(_SLICE_SECONDS)
                    continue
                sent, flood, self._flood = self.devices.changes, self._flood, 0
            yield from self._flooding(flood)
            yield self.devices.listing()

    def GetPreferredAllocation(  # noqa: N802
        self, request: api.PreferredAllocationRequest, context: Any
    ) -> api.PreferredAllocationResponse:
        """Return the devices with the highest numbers as the preferred ones."""
        asked = request.container_requests
        self._begin("preferred", context, *(one.allocation_size for one in asked))
        answers = [
            api.ContainerPreferredAllocationResponse(
                deviceIDs=preferred(one.available_deviceIDs, one.must_include_deviceIDs, one.allocation_size)
            )
            for one in asked
        ]
        return api.PreferredAllocationResponse(container_responses=answers)

    def Allocate(self, request: api.AllocateRequest, context: Any) -> api.AllocateResponse:  # noqa: N802
        """Return what each container gets with its devices."""
        ids = [name for one in request.container_requests for name in one.devices_ids]
        self._begin("allocate", context, *ids)
        answers = [self.template.answer(self.variable, list(one.devices_ids)) for one in request.container_requests]
        answers = (answers * max(self.behaviour.answers, 1))[: self.behaviour.answers * len(answers)]
        self._end("allocate", *ids)
        return api.AllocateResponse(container_responses=answers)

    def PreStartContainer(  # noqa: N802
        self, request: api.PreStartContainerRequest, context: Any
    ) -> api.PreStartContainerResponse:
        """Accept the start. The node makes this call before each start of the container."""
        self._begin("prestart", context, *request.devices_ids)
        self._end("prestart", *request.devices_ids)
        return api.PreStartContainerResponse()

    def GetInfo(self, _: registration.InfoRequest, context: Any) -> registration.PluginInfo:  # noqa: N802, ARG002
        """Identify the plugin to a node that has discovered its socket."""
        print_line(self.resource, "info")
        return registration.PluginInfo(
            type="DevicePlugin", name=self.resource, supported_versions=self.versions, endpoint=""
        )

    def NotifyRegistrationStatus(  # noqa: N802
        self,
        request: registration.RegistrationStatus,
        context: Any,  # noqa: ARG002
    ) -> registration.RegistrationStatusResponse:
        """Record whether the node accepted the plugin."""
        self.refused = "" if request.plugin_registered else request.error or "refused"
        print_line(self.resource, f"refused: {self.refused}" if self.refused else "registered")
        self.status_known.set()
        return registration.RegistrationStatusResponse()

    # -- misbehaviour ----------------------------------------------------------------------------------------------

    def _begin(self, method: str, context: Any, *about: object) -> None:
        print_line(self.resource, method, *about)
        behaviour = self.behaviour
        if method in behaviour.crash:
            _die(self.resource, method)
        until = time.monotonic() + behaviour.slow.get(method, 0)
        while (method in behaviour.hang or time.monotonic() < until) and context.is_active():
            time.sleep(0.02)
        if method in behaviour.fail:
            context.abort(grpc.StatusCode.UNKNOWN, behaviour.fail[method])

    def _end(self, method: str, *about: object) -> None:
        if method in self.behaviour.crash_late:
            _die(self.resource, method)
        print_line(self.resource, f"{method}d", *about)

    def _flooding(self, count: int) -> Iterator[api.ListAndWatchResponse]:
        usual = self.devices.listing()
        empty = api.ListAndWatchResponse()
        for nth in range(count):
            yield empty if nth % 2 else usual


def _die(resource: str, method: str) -> NoReturn:
    print_line(resource, "crashes at", method)
    os._exit(3)
