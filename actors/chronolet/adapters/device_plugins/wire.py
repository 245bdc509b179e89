"""Convert between the protobuf messages of plugins and our records. Pure.

Input: protobuf messages. Output: records of `chronolet_schemas.devices`, and vice versa. Next: `plugin_calls`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from chronolet.ports.devices.plugins import Registering
from chronolet_schemas.devices import Answer, DeviceInfo, DeviceNode, Mount, PluginOptions
from chronolet_schemas.protos import deviceplugin_pb2 as api
from chronolet_schemas.protos import pluginregistration_pb2 as found

DEVICE_PLUGIN = "DevicePlugin"
"""The only plugin type in the watched folder that this node accepts."""


def registering(request: api.RegisterRequest, folder: str) -> Registering:
    """Convert a plugin's Register call. Early plugins send no options."""
    return Registering(
        by="registration",
        resource=request.resource_name,
        versions=(request.version,),
        endpoint=request.endpoint,
        folder=folder,
        options=options(request.options) if request.HasField("options") else None,
    )


def found_registering(info: found.PluginInfo, socket: str, folder: str) -> Registering:
    """Convert a discovered plugin's reply to GetInfo."""
    return Registering(
        by="watcher",
        resource=info.name,
        versions=tuple(info.supported_versions),
        endpoint=_found_endpoint(info.endpoint, socket, folder),
        folder=folder,
    )


def _found_endpoint(named: str, socket: str, folder: str) -> str:
    """Return the path at which a discovered plugin serves.

    The watched folder may be mounted at another path in the plugin's container, and the plugin reports the path that it
    sees. Therefore, a path outside the folder whose last component is the discovered socket's name means that socket.
    """
    path = PurePosixPath(named)
    if not named or (
        path.is_absolute() and not path.is_relative_to(folder) and path.name == PurePosixPath(socket).name
    ):
        return socket
    return named


def options(message: api.DevicePluginOptions) -> PluginOptions:
    """Convert a plugin's options."""
    return PluginOptions(
        pre_start_required=message.pre_start_required, preferred_allocation=message.get_preferred_allocation_available
    )


def devices(message: api.ListAndWatchResponse) -> tuple[DeviceInfo, ...]:
    """Convert a device list in its order, including invalid entries."""
    return tuple(DeviceInfo(id=one.ID, health=one.health, nodes=_nodes(one)) for one in message.devices)


def _nodes(message: api.Device) -> tuple[int, ...]:
    """Return the NUMA nodes of a device. Ignores -1, which sysfs reports for a device without a node and plugins
    forward.
    """
    return tuple(node.ID for node in message.topology.nodes if node.ID >= 0)


def preference(available: Sequence[str], must_include: Sequence[str], size: int) -> api.PreferredAllocationRequest:
    """Build the preference request for one container."""
    one = api.ContainerPreferredAllocationRequest(
        available_deviceIDs=available, must_include_deviceIDs=must_include, allocation_size=size
    )
    return api.PreferredAllocationRequest(container_requests=[one])


def preferred(message: api.PreferredAllocationResponse) -> tuple[str, ...]:
    """Return the preferred devices from the first container response, because only one is requested."""
    return tuple(message.container_responses[0].deviceIDs) if message.container_responses else ()


def allocation(wanted: Sequence[str]) -> api.AllocateRequest:
    """Build the allocation request for one container."""
    return api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=wanted)])


def answers(message: api.AllocateResponse) -> tuple[Answer, ...]:
    """Convert all container responses; there should be exactly one."""
    return tuple(map(_answer, message.container_responses))


def _answer(message: api.ContainerAllocateResponse) -> Answer:
    return Answer(
        envs=dict(message.envs),
        mounts=tuple(
            Mount(container_path=one.container_path, host_path=one.host_path, read_only=one.read_only)
            for one in message.mounts
        ),
        devices=tuple(
            DeviceNode(container_path=one.container_path, host_path=one.host_path, permissions=one.permissions)
            for one in message.devices
        ),
        annotations=dict(message.annotations),
        cdi_devices=tuple(one.name for one in message.cdi_devices),
    )


def answer_message(answer: Answer) -> api.ContainerAllocateResponse:
    """Convert a response back to an equivalent plugin message, for the kubelet's checkpoint."""
    return api.ContainerAllocateResponse(
        envs=answer.envs,
        mounts=[
            api.Mount(container_path=one.container_path, host_path=one.host_path, read_only=one.read_only)
            for one in answer.mounts
        ],
        devices=[
            api.DeviceSpec(container_path=one.container_path, host_path=one.host_path, permissions=one.permissions)
            for one in answer.devices
        ],
        annotations=answer.annotations,
        cdi_devices=[api.CDIDevice(name=name) for name in answer.cdi_devices],
    )
