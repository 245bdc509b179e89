"""The gRPC messages: published names and numbers, and generated code that matches the .proto files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from google.protobuf.descriptor import FileDescriptor

from chronolet_schemas.protos import deviceplugin_pb2, pluginregistration_pb2, podresources_pb2

SCHEMAS = Path(__file__).parents[2] / "schemas"
PROTOS = SCHEMAS / "chronolet_schemas" / "protos"

NUMBERS = {
    "v1beta1.DevicePluginOptions": {"pre_start_required": 1, "get_preferred_allocation_available": 2},
    "v1beta1.RegisterRequest": {"version": 1, "endpoint": 2, "resource_name": 3, "options": 4},
    "v1beta1.Empty": {},
    "v1beta1.ListAndWatchResponse": {"devices": 1},
    "v1beta1.TopologyInfo": {"nodes": 1},
    "v1beta1.NUMANode": {"ID": 1},
    "v1beta1.Device": {"ID": 1, "health": 2, "topology": 3},
    "v1beta1.PreStartContainerRequest": {"devices_ids": 1},
    "v1beta1.PreStartContainerResponse": {},
    "v1beta1.PreferredAllocationRequest": {"container_requests": 1},
    "v1beta1.ContainerPreferredAllocationRequest": {
        "available_deviceIDs": 1,
        "must_include_deviceIDs": 2,
        "allocation_size": 3,
    },
    "v1beta1.PreferredAllocationResponse": {"container_responses": 1},
    "v1beta1.ContainerPreferredAllocationResponse": {"deviceIDs": 1},
    "v1beta1.AllocateRequest": {"container_requests": 1},
    "v1beta1.ContainerAllocateRequest": {"devices_ids": 1},
    "v1beta1.CDIDevice": {"name": 1},
    "v1beta1.AllocateResponse": {"container_responses": 1},
    "v1beta1.ContainerAllocateResponse": {"envs": 1, "mounts": 2, "devices": 3, "annotations": 4, "cdi_devices": 5},
    "v1beta1.Mount": {"container_path": 1, "host_path": 2, "read_only": 3},
    "v1beta1.DeviceSpec": {"container_path": 1, "host_path": 2, "permissions": 3},
    "pluginregistration.PluginInfo": {"type": 1, "name": 2, "endpoint": 3, "supported_versions": 4},
    "pluginregistration.RegistrationStatus": {"plugin_registered": 1, "error": 2},
    "pluginregistration.RegistrationStatusResponse": {},
    "pluginregistration.InfoRequest": {},
    "v1.AllocatableResourcesRequest": {},
    "v1.AllocatableResourcesResponse": {"devices": 1, "cpu_ids": 2, "memory": 3},
    "v1.ListPodResourcesRequest": {},
    "v1.ListPodResourcesResponse": {"pod_resources": 1},
    "v1.PodResources": {"name": 1, "namespace": 2, "containers": 3},
    "v1.ContainerResources": {"name": 1, "devices": 2, "cpu_ids": 3, "memory": 4, "dynamic_resources": 5},
    "v1.ContainerMemory": {"memory_type": 1, "size": 2, "topology": 3},
    "v1.ContainerDevices": {"resource_name": 1, "device_ids": 2, "topology": 3},
    "v1.TopologyInfo": {"nodes": 1},
    "v1.NUMANode": {"ID": 1},
    "v1.DynamicResource": {"claim_name": 2, "claim_namespace": 3, "claim_resources": 4},
    "v1.ClaimResource": {"cdi_devices": 1, "driver_name": 2, "pool_name": 3, "device_name": 4},
    "v1.CDIDevice": {"name": 1},
    "v1.GetPodResourcesRequest": {"pod_name": 1, "pod_namespace": 2},
    "v1.GetPodResourcesResponse": {"pod_resources": 1},
}

METHODS = {
    "v1beta1.Registration": {"Register"},
    "v1beta1.DevicePlugin": {
        "GetDevicePluginOptions",
        "ListAndWatch",
        "GetPreferredAllocation",
        "Allocate",
        "PreStartContainer",
    },
    "pluginregistration.Registration": {"GetInfo", "NotifyRegistrationStatus"},
    "v1.PodResourcesLister": {"List", "GetAllocatableResources", "Get"},
}

FILES: list[FileDescriptor] = [
    deviceplugin_pb2.DESCRIPTOR,
    pluginregistration_pb2.DESCRIPTOR,
    podresources_pb2.DESCRIPTOR,
]


def test_names_and_numbers_are_the_published_ones() -> None:
    messages = [message for file in FILES for message in file.message_types_by_name.values()]
    assert {one.full_name: {field.name: field.number for field in one.fields} for one in messages} == NUMBERS
    services = [service for file in FILES for service in file.services_by_name.values()]
    assert {one.full_name: {method.name for method in one.methods} for one in services} == METHODS
    watch = deviceplugin_pb2.DESCRIPTOR.services_by_name["DevicePlugin"].methods_by_name["ListAndWatch"]
    assert watch.server_streaming


def test_generated_code_matches_the_proto_files(tmp_path: Path) -> None:
    files = sorted(str(path.relative_to(SCHEMAS)) for path in PROTOS.glob("*.proto"))
    out = (f"--python_out={tmp_path}", f"--pyi_out={tmp_path}")
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", "-I.", *out, *files], cwd=SCHEMAS, check=True)
    made = {path.name: path.read_text() for path in tmp_path.rglob("*_pb2.py*")}
    assert len(made) == 2 * len(files) == 6
    for name, text in made.items():
        assert _without_version(text) == _without_version((PROTOS / name).read_text()), f"{name}: run scripts/protos"


def _without_version(text: str) -> list[str]:
    """Return the lines of generated code that do not depend on the generator's version."""
    return [line for line in text.splitlines() if "AddSerializedFile" in line or line.startswith("class ")]
