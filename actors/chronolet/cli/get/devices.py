"""Devices of the node's plugins, one by one: how they are, and who has them.

Comes in: the state of `devices`. Goes out: devices as plain data, and their rows. Next: `get`, `described_device`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.cli.get import pods
from chronolet.cli.printing import ages
from chronolet.devices.actor import NODE
from chronolet.devices.state import Claim, Device, Resource, State
from chronolet.history.state import Moment
from chronolet_schemas.devices import UNHEALTHY

Object = dict[str, Any]

HEAD = ("RESOURCE", "ID", "HEALTH", "NUMA", "POD", "CONTAINER", "SINCE")
WIDE = ("PLUGIN", "UID")
NOBODY = "<none>"
UNKNOWN, GONE = "Unknown", "Gone"
"""The health of a device whose plugin has not registered since the agent began; of one that is not listed any more."""


def known(moment: Moment) -> State:
    """What devices knows at that moment."""
    state: State = moment.states["devices"].get(NODE, State())
    return state


def of(state: State) -> list[Object]:
    """Every device that is listed, or held though it is not, by resource and id."""
    names = sorted({*state.resources, *state.used})
    return [device for name in names for device in _of_resource(state, name)]


def _of_resource(state: State, name: str) -> Iterator[Object]:
    resource = state.resources.get(name)
    listed = resource.devices if resource is not None else {}
    for one in sorted({*listed, *state.holders(name)}):
        yield _device(state, name, one, resource, listed.get(one))


def _device(state: State, name: str, one: str, resource: Resource | None, device: Device | None) -> Object:
    claims = [state.claims[key] for key in state.holders(name).get(one, ())]
    found: Object = {
        "resource": name,
        "id": one,
        "health": health(resource, device),
        "numaNodes": list(device.nodes) if device is not None else [],
        "plugin": {"phase": resource.phase if resource is not None else "removed"},
    }
    if resource is not None and resource.socket:
        found["plugin"]["socket"] = resource.socket
    return found | (_held(claims, name) if claims else {})


def _held(claims: Sequence[Claim], resource: str) -> Object:
    """By more than one container only where an init container left it to another."""
    namespace, _, pod = claims[0].pod.partition("/")
    return {
        "namespace": namespace,
        "pod": pod,
        "uid": claims[0].uid,
        "containers": [one.container for one in claims],
        "since": ages.rfc3339(min(one.given_at[resource] for one in claims)),
        "allocated": all(one.phase == "granted" for one in claims),
    }


def health(resource: Resource | None, device: Device | None) -> str:
    """In one word. What a plugin said before the agent's last start says nothing about now."""
    if resource is None or device is None:
        return GONE
    if resource.phase == "stopped":
        return UNHEALTHY
    return device.health if resource.phase == "listed" else UNKNOWN


def name_of(device: Object) -> str:
    """`vendor.test/gpu/0`: no two devices share it."""
    return f"{device['resource']}/{device['id']}"


def gone(name: str) -> Object:
    """A device of which only its whole name is known."""
    vendor, kind, one = name.split("/", 2)
    return {"resource": f"{vendor}/{kind}", "id": one, "health": GONE, "numaNodes": [], "plugin": {"phase": "unknown"}}


def is_named(device: Object, names: Sequence[str]) -> bool:
    """Whether one of the names means it: its id, its resource, or both."""
    return bool({device["id"], device["resource"], name_of(device)} & set(names))


def head(*, wide: bool) -> list[str]:
    """The columns' names."""
    return [*HEAD, *(WIDE if wide else ())]


def row(device: Object, now: int, *, wide: bool) -> list[str]:
    """The cells of one device."""
    since = device.get("since")
    cells = [
        device["resource"],
        device["id"],
        device["health"],
        ",".join(str(node) for node in device["numaNodes"]) or NOBODY,
        f"{device['namespace']}/{device['pod']}" if "pod" in device else NOBODY,
        ",".join(device.get("containers", ())) or NOBODY,
        ages.ago(pods.milliseconds(since), now) if since else NOBODY,
    ]
    return [*cells, device["plugin"]["phase"], device.get("uid", NOBODY)] if wide else cells
