"""Lists devices of the node's plugins for `get devices`: their health and allocation.

Input: the state of `devices`. Output: devices as plain data, and their rows. Next: `get`, `device_section`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.cli.errors import not_found
from chronolet.cli.get import pod_rows
from chronolet.cli.get.query import Found, Query
from chronolet.cli.printing import ages
from chronolet.cli.session import Session
from chronolet.devices.actor import NODE
from chronolet.devices.state import Claim, Device, Resource, State
from chronolet.history.state import Folding, Moment
from chronolet_schemas.devices import UNHEALTHY

Object = dict[str, Any]

HEAD = ("RESOURCE", "ID", "HEALTH", "NUMA", "POD", "CONTAINER", "SINCE")
WIDE = ("PLUGIN", "UID")
NONE = "<none>"
UNKNOWN, GONE = "Unknown", "Gone"
"""Unknown: the plugin has sent no list since it registered or the agent started. Gone: the device is not listed."""


def find(node: Session, query: Query) -> tuple[Found, list[str]]:
    """Return the objects that the query selects, and an error line for each name that was not found."""
    everything = of(state_of(node.state("devices")))
    chosen = query.sorted([one for one in everything if not query.names or is_named(one, query.names)])
    missing = [not_found("devices", name) for name in query.names if not any(is_named(one, (name,)) for one in chosen)]
    wide = query.output == "wide"
    found = Found(
        items=chosen,
        names=[f"device/{name_of(one)}" for one in chosen],
        head=head(wide=wide),
        rows=[row(one, node.now(), wide=wide) for one in chosen],
    )
    return found, missing


def state_of(moment: Moment | Folding) -> State:
    """Return the state of `devices` at that moment."""
    state: State = moment.states["devices"].get(NODE, State())
    return state


def of(state: State) -> list[Object]:
    """Return every device that is listed or still allocated, ordered by resource and id."""
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
    """Return the fields about a device's holders. There are several only if an init container passed its device on."""
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
    """Return a device's health in one word: as its plugin reported it, or as its plugin's state implies."""
    if resource is None or device is None:
        return GONE
    if resource.phase == "stopped":
        return UNHEALTHY
    return device.health if resource.phase == "listed" else UNKNOWN


def name_of(device: Object) -> str:
    """Return the device's full name, such as `vendor.test/gpu/0`, which is unique on the node."""
    return f"{device['resource']}/{device['id']}"


def gone(name: str) -> Object:
    """Return a device of which only the full name is known."""
    vendor, kind, one = name.split("/", 2)
    return {"resource": f"{vendor}/{kind}", "id": one, "health": GONE, "numaNodes": [], "plugin": {"phase": "unknown"}}


def is_named(device: Object, names: Sequence[str]) -> bool:
    """Return whether one of the names is the device's id, its resource or its full name."""
    return bool({device["id"], device["resource"], name_of(device)} & set(names))


def head(*, wide: bool) -> list[str]:
    """Return the column names."""
    return [*HEAD, *(WIDE if wide else ())]


def row(device: Object, now: ages.Now, *, wide: bool) -> list[str]:
    """Return the cells of one device."""
    since = device.get("since")
    cells = [
        device["resource"],
        device["id"],
        device["health"],
        ",".join(str(node) for node in device["numaNodes"]) or NONE,
        f"{device['namespace']}/{device['pod']}" if "pod" in device else NONE,
        ",".join(device.get("containers", ())) or NONE,
        ages.ago(pod_rows.milliseconds(since), now) if since else NONE,
    ]
    return [*cells, device["plugin"]["phase"], device.get("uid", NONE)] if wide else cells
