"""Formats the page of `describe node`.

Input: a Node in API form, the states of its pods, its events. Output: lines in kubectl's format.
Next: `describe`. Source: kubectl's pkg/describe (describeNode).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chronolet.cli.describe.layout import line, mapping, moment
from chronolet.cli.describe.pod_section import conditions, events
from chronolet.cli.printing import ages, table
from chronolet.node.http.api_node import cores, kibibytes
from chronolet.pod.state import State
from chronolet.pod.status.status import pod_status
from chronolet.rules.resources import resources
from chronolet_schemas.kube_events import Post

Object = dict[str, Any]

_COLUMN = 20
_INFO = (
    ("Machine ID", "machineID"),
    ("System UUID", "systemUUID"),
    ("Boot ID", "bootID"),
    ("Kernel Version", "kernelVersion"),
    ("OS Image", "osImage"),
    ("Operating System", "operatingSystem"),
    ("Architecture", "architecture"),
    ("Container Runtime Version", "containerRuntimeVersion"),
    ("Kubelet Version", "kubeletVersion"),
)
_PODS = ("Namespace", "Name", "CPU Requests", "CPU Limits", "Memory Requests", "Memory Limits", "Age")
_SUMS = ("Resource", "Requests", "Limits")


def described(node: Object, states: Iterable[State], posts: Sequence[Post], now: int) -> Iterator[str]:
    """Yield the lines that `describe node` prints."""
    metadata, status = node["metadata"], node["status"]
    yield line("Name", metadata["name"], column=_COLUMN)
    yield line("Roles", "<none>", column=_COLUMN)
    yield from mapping("Labels", metadata["labels"], "=", _COLUMN)
    yield line("CreationTimestamp", moment(metadata["creationTimestamp"]), column=_COLUMN)
    yield from conditions(status["conditions"])
    yield "Addresses:"
    yield from (f"  {table.plain(one['type'])}:  {table.plain(one['address'])}" for one in status["addresses"])
    for title in ("Capacity", "Allocatable"):
        yield f"{title}:"
        yield from _pairs(status[title.lower()])
    yield "System Info:"
    yield from _pairs({title: status["nodeInfo"][name] or "<unknown>" for title, name in _INFO})
    yield from _pods([state for state in states if _counts(state)], status["allocatable"], now)
    yield from events(posts, now)


def _pairs(values: Mapping[str, str]) -> Iterator[str]:
    width = max(map(len, values), default=0) + 3
    yield from (f"  {table.plain(name)}:".ljust(width + 2) + table.plain(text) for name, text in values.items())


def _counts(state: State) -> bool:
    return bool(state.uid) and pod_status(state).phase not in ("Succeeded", "Failed")


def _pods(states: Sequence[State], allocatable: Mapping[str, str], now: int) -> Iterator[str]:
    yield f"Non-terminated Pods:  ({len(states)} in total)"
    requests = [resources.pod_requests(state.manifest.spec) for state in states]
    limits = [resources.pod_limits(state.manifest.spec) for state in states]
    room = _room(allocatable)
    rows = [
        _row(state, each, limit, room, now)
        for state, each, limit in sorted(zip(states, requests, limits, strict=True), key=lambda one: one[0].pod)
    ]
    yield from table.lines(_PODS, [["-" * len(name) for name in _PODS], *rows], indent="  ")
    yield "Allocated resources:"
    yield "  (Total limits may be over 100 percent, i.e., overcommitted.)"
    names = ["cpu", "memory", *sorted({name for one in (*requests, *limits) for name in one} - {"cpu", "memory"})]
    sums = [
        [name, *(_share(name, sum(one.get(name, 0) for one in side), room) for side in (requests, limits))]
        for name in names
    ]
    yield from table.lines(_SUMS, [["-" * len(name) for name in _SUMS], *sums], indent="  ")


def _row(
    state: State, requests: Mapping[str, int], limits: Mapping[str, int], room: Mapping[str, int], now: int
) -> list[str]:
    namespace, _, name = state.pod.partition("/")
    cells = [_share(what, side.get(what, 0), room) for what in ("cpu", "memory") for side in (requests, limits)]
    return [namespace, name, *cells, ages.ago(state.accepted_at, now)]


def _room(allocatable: Mapping[str, str]) -> Mapping[str, int]:
    return resources.amounts({name: text for name, text in allocatable.items() if name != "pods"})


def _share(name: str, amount: int, room: Mapping[str, int]) -> str:
    """Format an amount and its share of the allocatable amount: `500m (25%)`."""
    text = cores(amount) if name == "cpu" else _bytes(amount) if name == "memory" else str(amount)
    whole = room.get(name, 0)
    return f"{text} ({amount * 100 // whole}%)" if whole else text


def _bytes(amount: int) -> str:
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20)):
        if amount and amount % size == 0:
            return f"{amount // size}{unit}"
    return kibibytes(amount)
