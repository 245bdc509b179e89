"""Export the state in the format of the kubelet's checkpoint file, kubelet_internal_checkpoint. Pure.

Input: State, and a protobuf serializer for allocation responses. Output: the file's text. Next: `cli`. Source:
pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go, pod_devices.go (toCheckpointData), pkg/kubelet/checkpointmanager.

The file is for people with jq and for tools that look up allocations; chronolet itself never reads it. The checksum is
computed as in the kubelet (FNV-1a of go-spew's dump of the data with all types), so that a kubelet can load the file.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from chronolet.devices.state import Device, State
from chronolet_schemas.devices import Answer

NO_NODE: Final = -1
"""The node number under which devices without a NUMA node are listed."""
_FNV_OFFSET, _FNV_PRIME, _FNV_MASK = 0x811C9DC5, 0x01000193, 0xFFFFFFFF


class Entry(NamedTuple):
    """The devices of one resource that one container holds. `devices` maps NUMA nodes to device ids."""

    uid: str
    container: str
    resource: str
    devices: Mapping[int, Sequence[str]]
    answer: bytes


def exported(state: State, serialize: Callable[[Answer], bytes]) -> str:
    """Return the text of the checkpoint file."""
    entries = list(_entries(state, serialize))
    registered = {name: sorted(resource.healthy()) for name, resource in sorted(state.resources.items())}
    data = {
        "PodDeviceEntries": [_json(entry) for entry in entries] or None,
        "RegisteredDevices": registered,
    }
    return msgspec.json.encode({"Data": data, "Checksum": checksum(entries, registered)}).decode()


def checksum(entries: Sequence[Entry], registered: Mapping[str, Sequence[str]]) -> int:
    """Return the checksum that the kubelet computes for this content."""
    found = _FNV_OFFSET
    for byte in _printed(entries, registered).encode():
        found = (found ^ byte) * _FNV_PRIME & _FNV_MASK
    return found


def _entries(state: State, serialize: Callable[[Answer], bytes]) -> Iterator[Entry]:
    for _, claim in sorted(state.claims.items()):
        for name, allocation in sorted(claim.held.items()):
            known = state.resources[name].devices if name in state.resources else {}
            yield Entry(
                uid=claim.uid,
                container=claim.container,
                resource=name,
                devices=_by_node(allocation.devices, known),
                answer=serialize(allocation.answer),
            )


def _by_node(ids: Iterable[str], known: Mapping[str, Device]) -> Mapping[int, Sequence[str]]:
    """Group device ids by NUMA node; a device on two nodes appears under both."""
    found: dict[int, list[str]] = {}
    for one in sorted(ids):
        nodes = known[one].nodes if one in known else ()
        for node in nodes or (NO_NODE,):
            found.setdefault(node, []).append(one)
    return dict(sorted(found.items()))


def _json(entry: Entry) -> Mapping[str, object]:
    return {
        "PodUID": entry.uid,
        "ContainerName": entry.container,
        "ResourceName": entry.resource,
        "DeviceIDs": {str(node): ids for node, ids in entry.devices.items()},
        "AllocResp": b64encode(entry.answer).decode(),
    }


def _printed(entries: Sequence[Entry], registered: Mapping[str, Sequence[str]]) -> str:
    """Format the data as go-spew does with the kubelet's settings: each field value is preceded by its type, and keys
    are sorted.
    """
    all_entries = f"[{' '.join(map(_printed_entry, entries))}]" if entries else "<nil>"
    resources = " ".join(f"{name}:{_list(ids)}" for name, ids in sorted(registered.items()))
    return (
        f"(checkpoint.checkpointData){{PodDeviceEntries:([]checkpoint.PodDevicesEntry){all_entries} "
        f"RegisteredDevices:(map[string][]string)map[{resources}]}}"
    )


def _printed_entry(entry: Entry) -> str:
    devices = " ".join(f"{node}:{_list(ids)}" for node, ids in sorted(entry.devices.items()))
    return (
        f"{{PodUID:(string){entry.uid} ContainerName:(string){entry.container} ResourceName:(string){entry.resource} "
        f"DeviceIDs:(checkpoint.DevicesPerNUMA)map[{devices}] AllocResp:([]uint8){_list(map(str, entry.answer))}}}"
    )


def _list(texts: Iterable[str]) -> str:
    return f"[{' '.join(texts)}]"
