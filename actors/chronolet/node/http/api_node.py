"""The node in the form of the Kubernetes API: conditions, capacity, addresses, identity.

Input: the states of `qos`, `pleg` and `devices`, and which processes of the node are alive. Output: a v1 Node as plain
data. Next: `get nodes` and `describe node`; the page /metrics/state. Source: pkg/kubelet/nodestatus/setters.go.

Everything is read from the store, so a Node can be returned while no agent is running; its condition Ready is then
Unknown, and the message says why. To add a condition, add a function to `_CONDITIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from chronolet.devices import capacity
from chronolet.devices.state import State as Devices
from chronolet.history.state import Moment
from chronolet.kernel.storage.store import Store, owner_of
from chronolet.pleg.health import illness
from chronolet.pleg.state import State as Pleg
from chronolet.ports.machine.moments import rfc3339
from chronolet.qos.state import State as Qos
from chronolet_schemas.keys import Shard
from chronolet_schemas.qos import Amounts, System

Object = dict[str, Any]

_NODE = "node"
"""The key of the only entity of `qos`, `pleg` and `devices`."""
_NOT_MEASURED = "chronolet does not measure this pressure and evicts no pod for it"


class Facts(NamedTuple):
    """The facts from which a node's conditions are computed."""

    qos: Qos
    pleg: Pleg
    devices: Devices
    alive: bool | None
    """Whether a process of the node has a valid lease; None for a moment of the past, as leases are not recorded."""
    listed_by: bool
    """Whether a live process owns the shard of `pleg`, which lists containers."""
    now: int


def facts(moment: Moment, store: Store | None, now: int) -> Facts:
    """Collect the facts about the node. `moment` includes the states of `qos`, `pleg` and `devices`; `now` in
    milliseconds; `store`: None for a moment of the past. Raises StoreUnreachable and StoreBroken.
    """
    alive, listed_by = _alive(store) if store is not None else (None, False)
    return Facts(
        qos=moment.states["qos"].get(_NODE, Qos()),
        pleg=moment.states["pleg"].get(_NODE, Pleg()),
        devices=moment.states["devices"].get(_NODE, Devices()),
        alive=alive,
        listed_by=listed_by,
        now=now,
    )


def _alive(store: Store) -> tuple[bool, bool]:
    alive, shard = store.alive(), Shard("pleg")
    return bool(alive), owner_of(store.heads([shard])[shard].token) in alive


def api_node(about: Facts, name: str, created_at: int = 0) -> Object:
    """Return the node as a v1 Node. `created_at`: the time of the log's first entry in milliseconds, 0 if unknown."""
    described = about.qos.node
    system = described.system if described is not None else System()
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": dict(described.labels) if described is not None else {},
            "creationTimestamp": rfc3339(created_at) if created_at else "",
        },
        "spec": {},
        "status": {
            **_resources(about),
            "conditions": _conditions(about),
            "addresses": _addresses(system, name),
            "nodeInfo": _info(system),
        },
    }


# -- conditions ------------------------------------------------------------------------------------------------------
def _conditions(about: Facts) -> list[Object]:
    """Return the conditions; without Ready if it is unknown whether an agent was running, so that kubectl's word for
    the node is Unknown.
    """
    return [condition(about) for condition in _CONDITIONS if condition is not _ready or about.alive is not None]


def _ready(facts: Facts) -> Object:
    if not facts.alive:
        message = "no node agent is running: it stopped posting node status"
        return _condition("Ready", "Unknown", "NodeStatusUnknown", message)
    if not facts.listed_by:
        message = "no process of the node lists containers: none hosts the actor pleg"
        return _condition("Ready", "False", "KubeletNotReady", message)
    pleg = facts.pleg
    if not pleg.relist or pleg.unhealthy:
        listed = pleg.listed_at or None if pleg.relist else None
        problem = illness(listed, facts.now, pleg.threshold_milliseconds)
        return _condition("Ready", "False", "KubeletNotReady", f"PLEG is not healthy: {problem}")
    return _condition("Ready", "True", "KubeletReady", "the node agent is posting ready status")


def _pressure(name: str) -> Callable[[Facts], Object]:
    return lambda _facts: _condition(name, "Unknown", "NotMeasured", _NOT_MEASURED)


def _kills_held_back(facts: Facts) -> Object:
    """Return the condition that is true while kills for failed probes are held back on an overloaded machine."""
    kills = facts.pleg.probe_kills
    if facts.alive is False:
        return _condition("ProbeKillsHeldBack", "Unknown", "NodeStatusUnknown", "no node agent is running")
    if not kills.since:
        message = "containers whose liveness or startup probe fails are stopped immediately"
        return _condition("ProbeKillsHeldBack", "False", "ProbesJudged", message)
    short = f" while the machine is short of {', '.join(kills.short_of)}" if kills.short_of else ""
    message = (
        f"probes of several pods failed{short}: {len(kills.held)} stops are held back, "
        f"at most {kills.kills_per_minute} per minute are executed"
    )
    return _condition("ProbeKillsHeldBack", "True", "ManyProbesFail", message) | {
        "lastTransitionTime": rfc3339(kills.since)
    }


_CONDITIONS: Sequence[Callable[[Facts], Object]] = (
    _kills_held_back,
    _pressure("MemoryPressure"),
    _pressure("DiskPressure"),
    _pressure("PIDPressure"),
    _ready,
)
"""The functions that return the conditions, in output order. Ready comes last, as in the kubelet."""


def _condition(name: str, status: str, reason: str, message: str) -> Object:
    return {"type": name, "status": status, "reason": reason, "message": message}


# -- resources ------------------------------------------------------------------------------------------------------
def _resources(about: Facts) -> Object:
    """Return `capacity` and `allocatable`, which cover the machine and its device plugins."""
    devices, node = about.devices, about.qos.node
    if node is None:
        return {"capacity": {}, "allocatable": {}}
    storage = {"ephemeral-storage": kibibytes(node.system.storage_bytes)} if node.system.storage_bytes else {}
    has = {name: str(count) for name, count in capacity.capacity(devices).items()}
    may = {name: str(count) for name, count in capacity.node_allocatable(devices).items()}
    return {
        "capacity": _amounts(node.capacity, node.max_pods) | storage | has,
        "allocatable": _amounts(node.allocatable, node.max_pods) | storage | may,
    }


def _amounts(much: Amounts, most_pods: int) -> Object:
    pages = {name: kibibytes(size) for name, size in sorted(much.huge_pages.items())}
    return {"cpu": cores(much.cpu_milli), "memory": kibibytes(much.memory_bytes), "pods": str(most_pods)} | pages


def cores(milli: int) -> str:
    """Format an amount of CPU in Kubernetes notation: 2, 1500m."""
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"


def kibibytes(size: int) -> str:
    """Format an amount of memory in the kubelet's notation: 1024Ki."""
    return f"{size // 1024}Ki" if size else "0"


def _addresses(system: System, name: str) -> list[Object]:
    internal = [{"type": "InternalIP", "address": system.internal_ip}] if system.internal_ip else []
    return [*internal, {"type": "Hostname", "address": system.hostname or name}]


def _info(system: System) -> Object:
    return {
        "machineID": system.machine_id,
        "systemUUID": system.system_uuid,
        "bootID": system.boot_id,
        "kernelVersion": system.kernel_version,
        "osImage": system.os_image,
        "containerRuntimeVersion": system.container_runtime_version,
        "kubeletVersion": f"v{system.agent_version}" if system.agent_version else "",
        "kubeProxyVersion": "",
        "operatingSystem": system.operating_system,
        "architecture": system.architecture,
    }
