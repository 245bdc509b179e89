"""The methods of PodResources.

Input: a function that returns the node's resources. Output: responses to List, Get and GetAllocatableResources. Next:
monitoring agents. Called by `server`, which imports this module only when the first client connects, because it loads
grpc. Corresponds to pkg/kubelet/apis/podresources/server_v1.go, server_v1alpha1.go.

As in the kubelet, each device has one entry per NUMA node. Processors and memory are reported only if they are
exclusive to a container, which they never are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import grpc

from chronolet.ports.devices.pod_resources import (
    ContainerResources,
    Counted,
    Method,
    NodeResources,
    PodResources,
    ResourceDevice,
    UnreadableError,
    Version,
)
from chronolet_schemas.protos import podresources_pb2 as api

_SERVICE = "PodResourcesLister"


class Service:
    """The PodResources service. `view` is called for each request, and `counted` after each request."""

    def __init__(self, view: Callable[[], NodeResources], counted: Counted) -> None:
        self._view = view
        self._counted = counted

    def handlers(self) -> Sequence[grpc.GenericRpcHandler]:
        """Return the handlers for both versions of the API, v1 and v1alpha1."""
        methods = {
            "List": self._method("v1", "list", api.ListPodResourcesRequest, self._list),
            "Get": self._method("v1", "get", api.GetPodResourcesRequest, self._get),
            "GetAllocatableResources": self._method(
                "v1", "get_allocatable", api.AllocatableResourcesRequest, self._allocatable
            ),
        }
        # The messages of v1alpha1 are a subset of v1's, with the same field numbers.
        older = {"List": self._method("v1alpha1", "list", api.ListPodResourcesRequest, self._list_all)}
        return (
            grpc.method_handlers_generic_handler(f"v1.{_SERVICE}", methods),
            grpc.method_handlers_generic_handler(f"v1alpha1.{_SERVICE}", older),
        )

    def _method(
        self, version: Version, name: Method, request_type: Any, respond: Callable[[Any, NodeResources], Any]
    ) -> Any:
        def handle(request: Any, context: grpc.ServicerContext) -> Any:
            failed = True
            try:
                found = respond(request, self._view())
                failed = False
            except LookupError as error:
                context.abort(grpc.StatusCode.NOT_FOUND, str(error.args[0]))
            except UnreadableError as error:
                context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            finally:
                self._counted(version, name, failed)
            return found

        return grpc.unary_unary_rpc_method_handler(
            handle, request_type.FromString, lambda found: found.SerializeToString()
        )

    def _list(self, _: api.ListPodResourcesRequest, view: NodeResources) -> api.ListPodResourcesResponse:
        return api.ListPodResourcesResponse(pod_resources=(_pod(one) for one in view.pods if one.active))

    def _list_all(self, _: api.ListPodResourcesRequest, view: NodeResources) -> api.ListPodResourcesResponse:
        return api.ListPodResourcesResponse(pod_resources=map(_pod, view.pods))

    def _get(self, request: api.GetPodResourcesRequest, view: NodeResources) -> api.GetPodResourcesResponse:
        name, namespace = request.pod_name, request.pod_namespace
        for one in view.pods:
            if (one.name, one.namespace) == (name, namespace):
                return api.GetPodResourcesResponse(pod_resources=_pod(one))
        raise LookupError(f"pod {name} in namespace {namespace} not found")

    def _allocatable(self, _: api.AllocatableResourcesRequest, view: NodeResources) -> api.AllocatableResourcesResponse:
        return api.AllocatableResourcesResponse(devices=_devices(view.allocatable))


def _pod(one: PodResources) -> api.PodResources:
    return api.PodResources(name=one.name, namespace=one.namespace, containers=map(_container, one.containers))


def _container(one: ContainerResources) -> api.ContainerResources:
    return api.ContainerResources(name=one.name, devices=_devices(one.devices))


def _devices(found: Iterable[ResourceDevice]) -> Iterator[api.ContainerDevices]:
    for one in found:
        topologies = [api.TopologyInfo(nodes=[api.NUMANode(ID=node)]) for node in one.nodes]
        for topology in topologies or (None,):
            yield api.ContainerDevices(resource_name=one.resource, device_ids=[one.id], topology=topology)
