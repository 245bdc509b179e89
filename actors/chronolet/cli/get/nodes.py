"""Returns the node in API form for `get nodes`: conditions, capacity, labels, addresses.

Input: the states of `qos`, `pleg` and `devices`, and the live processes. Output: a v1 Node as plain data, its row.
Next: `get`, `node_section`. Source: pkg/kubelet/nodestatus/setters.go, kubectl's printers (printNode).

Everything comes from the node's store, so it is available without an agent. In that case, the condition Ready is
Unknown, and its message says why. To add a condition, add a function to `_CONDITIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from chronolet.cli.errors import not_found
from chronolet.cli.get import pod_rows
from chronolet.cli.get.devices import state_of as devices_state
from chronolet.cli.get.query import Found, Query
from chronolet.cli.printing import ages
from chronolet.cli.session import Session
from chronolet.devices import capacity
from chronolet.history.state import Moment
from chronolet.kernel.storage.store import HistoryMissing
from chronolet.pleg.health import illness
from chronolet.pleg.state import State as Pleg
from chronolet.qos.state import State as Qos
from chronolet_schemas.keys import Shard
from chronolet_schemas.qos import Amounts, System

Object = dict[str, Any]

HEAD = ("NAME", "STATUS", "ROLES", "AGE", "VERSION")
WIDE = ("INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME")
_NOT_MEASURED = "chronolet does not measure this pressure and evicts no pod for it"
_NONE = "<none>"


class Facts(NamedTuple):
    """The facts from which a node's conditions are computed."""

    qos: Qos
    pleg: Pleg
    alive: bool
    """Whether a process of the node has a valid lease."""
    listed_by: bool
    """Whether a live process owns the shard of `pleg`, which lists containers."""
    now: int


def find(node: Session, query: Query) -> tuple[Found, list[str]]:
    """Return the objects that the query selects, and an error line for each name that was not found."""
    one = of(node)
    name = one["metadata"]["name"]
    chosen = [one] if query.matches(one) and (not query.names or name in query.names) else []
    missing = [not_found("nodes", wanted) for wanted in query.names if wanted != name]
    wide, now = query.output == "wide", node.now()
    found = Found(
        items=chosen,
        names=[f"node/{name}" for _ in chosen],
        head=head(wide=wide, labelled=query.labels),
        rows=[row(each, now, wide=wide, labelled=query.labels) for each in chosen],
    )
    return found, missing


def of(node: Session) -> Object:
    """Return the node as a v1 Node."""
    moment = node.state("qos", "pleg", "devices")
    facts = _facts(node, moment)
    described = facts.qos.node
    system = described.system if described is not None else System()
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.settings.node,
            "labels": dict(described.labels) if described is not None else {},
            "creationTimestamp": _created(node),
        },
        "spec": {},
        "status": {
            **_resources(facts.qos, moment),
            "conditions": [condition(facts) for condition in _CONDITIONS],
            "addresses": _addresses(system, node.settings.node),
            "nodeInfo": _info(system),
        },
    }


def _facts(node: Session, moment: Moment) -> Facts:
    alive = node.store.alive()
    shard = Shard("pleg")
    owner = node.store.heads([shard])[shard].token.partition(":")[2]
    return Facts(
        qos=moment.states["qos"].get("node", Qos()),
        pleg=moment.states["pleg"].get("node", Pleg()),
        alive=bool(alive),
        listed_by=owner in alive,
        now=node.now(),
    )


def _created(node: Session) -> str:
    """Return the time of the log's first entry; empty if there is none or it cannot be read."""
    try:
        first = next(iter(node.entries()), None)
    except HistoryMissing:
        return ""
    return ages.rfc3339(first.position.milliseconds) if first is not None else ""


# -- conditions ------------------------------------------------------------------------------------------------------
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
    if not facts.alive:
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
        "lastTransitionTime": ages.rfc3339(kills.since)
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
def _resources(state: Qos, moment: Moment) -> Object:
    """Return `capacity` and `allocatable` of the machine, with its devices; empty if no agent has recorded it yet."""
    devices, node = devices_state(moment), state.node
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
    """Format a number of bytes in the kubelet's notation, rounded down: 1024Ki."""
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


# -- table row ------------------------------------------------------------------------------------------------------
def head(*, wide: bool, labelled: bool) -> list[str]:
    """Return the column names."""
    return [*HEAD, *(WIDE if wide else ()), *(("LABELS",) if labelled else ())]


def row(one: Object, now: int, *, wide: bool, labelled: bool) -> list[str]:
    """Return the node's cells in kubectl's format."""
    metadata, status = one["metadata"], one["status"]
    info = status["nodeInfo"]
    cells = [
        metadata["name"],
        "Ready" if _is_ready(status["conditions"]) else "NotReady",
        _NONE,
        ages.ago(pod_rows.milliseconds(metadata["creationTimestamp"]), now),
        info["kubeletVersion"] or "<unknown>",
    ]
    if wide:
        internal = next((each["address"] for each in status["addresses"] if each["type"] == "InternalIP"), _NONE)
        known = (info[name] or "<unknown>" for name in ("osImage", "kernelVersion", "containerRuntimeVersion"))
        cells += [internal, _NONE, *known]
    return [*cells, pod_rows.labels(one)] if labelled else cells


def _is_ready(conditions: Iterable[Object]) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
