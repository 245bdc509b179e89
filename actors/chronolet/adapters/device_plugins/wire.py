"""What goes over the wire to and from plugins, as our own records. Pure.

Comes in: protobuf messages. Goes out: records of `chronolet_schemas.devices`, and the other way round. Next: `plugins`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from chronolet.ports.devices.plugins import Registering
from chronolet_schemas.devices import Answer, DeviceInfo, DeviceNode, Mount, PluginOptions
from chronolet_schemas.protos import deviceplugin_pb2 as api
from chronolet_schemas.protos import pluginregistration_pb2 as found

DEVICE_PLUGIN = "DevicePlugin"
"""The type of those plugins in the watched folder that are ours."""


def registering(request: api.RegisterRequest, folder: str) -> Registering:
    """A call to the registration socket. A plugin of the first days sends no options."""
    return Registering(
        by="registration",
        resource=request.resource_name,
        versions=(request.version,),
        endpoint=request.endpoint,
        folder=folder,
        options=options(request.options) if request.HasField("options") else None,
    )


def found_registering(info: found.PluginInfo, socket: str, folder: str) -> Registering:
    """What a plugin says that was found by its socket."""
    return Registering(
        by="watcher",
        resource=info.name,
        versions=tuple(info.supported_versions),
        endpoint=_found_endpoint(info.endpoint, socket, folder),
        folder=folder,
    )


def _found_endpoint(named: str, socket: str, folder: str) -> str:
    """Where a plugin serves that was found by its socket.

    In a container the watched folder may be mounted elsewhere, and plugins name the path that they see: a path outside
    the folder that ends in the found socket's name means that socket.
    """
    path = PurePosixPath(named)
    if not named or (
        path.is_absolute() and not path.is_relative_to(folder) and path.name == PurePosixPath(socket).name
    ):
        return socket
    return named


def options(said: api.DevicePluginOptions) -> PluginOptions:
    """What a plugin wants to be asked."""
    return PluginOptions(
        pre_start_required=said.pre_start_required, preferred_allocation=said.get_preferred_allocation_available
    )


def devices(said: api.ListAndWatchResponse) -> tuple[DeviceInfo, ...]:
    """A list, in its order, with whatever is wrong in it."""
    return tuple(DeviceInfo(id=one.ID, health=one.health, nodes=_nodes(one)) for one in said.devices)


def _nodes(said: api.Device) -> tuple[int, ...]:
    """The NUMA nodes of a device. Plugins pass on the -1 of sysfs for a device that is near to none."""
    return tuple(node.ID for node in said.topology.nodes if node.ID >= 0)


def preference(available: Sequence[str], must_include: Sequence[str], size: int) -> api.PreferredAllocationRequest:
    """The question of one container."""
    one = api.ContainerPreferredAllocationRequest(
        available_deviceIDs=available, must_include_deviceIDs=must_include, allocation_size=size
    )
    return api.PreferredAllocationRequest(container_requests=[one])


def preferred(said: api.PreferredAllocationResponse) -> tuple[str, ...]:
    """The answer to it; whatever else was answered is not about it."""
    return tuple(said.container_responses[0].deviceIDs) if said.container_responses else ()


def allocation(wanted: Sequence[str]) -> api.AllocateRequest:
    """The request of one container."""
    return api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=wanted)])


def answers(said: api.AllocateResponse) -> tuple[Answer, ...]:
    """All answers, of which there should be one."""
    return tuple(map(_answer, said.container_responses))


def _answer(said: api.ContainerAllocateResponse) -> Answer:
    return Answer(
        envs=dict(said.envs),
        mounts=tuple(
            Mount(container_path=one.container_path, host_path=one.host_path, read_only=one.read_only)
            for one in said.mounts
        ),
        devices=tuple(
            DeviceNode(container_path=one.container_path, host_path=one.host_path, permissions=one.permissions)
            for one in said.devices
        ),
        annotations=dict(said.annotations),
        cdi_devices=tuple(one.name for one in said.cdi_devices),
    )


def answer_message(answer: Answer) -> api.ContainerAllocateResponse:
    """An answer as the plugin sent it, as far as its meaning goes: the kubelet's checkpoint holds it so."""
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
