"""The metrics of pods on the page /metrics/state. Pure.

Input: a pod's State. Output: its samples as text, one piece for each metric. Next: `page`, which keeps the
pieces of unchanged pods. Source: kube-state-metrics' internal/store/pod.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from chronolet.node.state_page import containers
from chronolet.node.state_page.text import Family, Sample, label, rendered
from chronolet.pod.state import State, definitions
from chronolet.pod.status.api import PodStatus
from chronolet.pod.status.status import pod_status
from chronolet_schemas.podspec.meta import OwnerReference

_MILLI = 1000
_PHASES = ("Pending", "Succeeded", "Failed", "Unknown", "Running")
_CONDITIONS = ("true", "false", "unknown")
_REASONS = ("Evicted", "NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError")
_QOS_CLASSES = ("BestEffort", "Burstable", "Guaranteed")
_TERMINAL = ("Succeeded", "Failed")


class Row(NamedTuple):
    """One pod."""

    state: State
    status: PodStatus
    node: str
    """The name of the node."""


def _owner(row: Row) -> OwnerReference:
    """Return the reference to the pod's controller; an empty one if it has none."""
    owners = row.state.manifest.metadata.owner_references
    return next((one for one in owners if one.controller), OwnerReference())


def _info(row: Row) -> Iterable[Sample]:
    spec, creator = row.state.manifest.spec, _owner(row)
    labels = {
        "host_ip": row.status.host_ip,
        "pod_ip": row.status.pod_ip,
        "node": row.node,
        "created_by_kind": creator.kind,
        "created_by_name": creator.name,
        "priority_class": spec.priority_class_name,
        "host_network": str(spec.host_network).lower(),
    }
    return ((f",{rendered(labels)}", 1),)


def _owners(row: Row) -> Iterator[Sample]:
    owners = row.state.manifest.metadata.owner_references
    for one in owners or (OwnerReference(),):
        is_controller = str(bool(one.controller)).lower() if owners else ""
        kind = label("owner_kind", one.kind) + label("owner_name", one.name)
        yield kind + label("owner_is_controller", is_controller), 1


def _addresses(row: Row) -> Iterator[Sample]:
    for one in row.status.pod_ips:
        yield label("ip", one.ip) + label("ip_family", "6" if ":" in one.ip else "4"), 1


def _at(of: Callable[[Row], int]) -> Callable[[Row], Iterable[Sample]]:
    """Return a function that yields, in seconds, the time that `of` reads in milliseconds; nothing for 0 (unknown)."""

    def read(row: Row) -> Iterable[Sample]:
        at = of(row)
        return (("", at / _MILLI),) if at else ()

    return read


def _completed_at(row: Row) -> int:
    ends = [one.exit.finished_at for one in row.state.containers if one.exit is not None]
    return max(ends, default=0) if row.status.phase in _TERMINAL else 0


def _one_of(
    name: str, known: Sequence[str], of: Callable[[Row], str], *, other: bool = False
) -> Callable[[Row], Iterator[Sample]]:
    """Return a function that yields a sample for each `known` value of the label `name`: 1 for the current value, 0 for
    the rest. `other`: whether a current value that is not `known` is a sample, too.
    """
    labels = [(value, label(name, value)) for value in known]

    def read(row: Row) -> Iterator[Sample]:
        now = of(row)
        for value, text in labels:
            yield text, int(value == now)
        if other and now and now not in known:
            yield label(name, now), 1

    return read


def _condition(name: str) -> Callable[[Row], str]:
    def read(row: Row) -> str:
        return next((one.status.lower() for one in row.status.conditions if one.type == name), "unknown")

    return read


_PODS: tuple[Family[Row], ...] = (
    Family("kube_pod_info", "gauge", "Addresses, node and creator", _info),
    Family("kube_pod_owner", "gauge", "Owners; one with empty labels if there is none", _owners),
    Family("kube_pod_ips", "gauge", "Addresses", _addresses),
    Family(
        "kube_pod_created", "gauge", "Acceptance since the epoch in seconds", _at(lambda row: row.state.accepted_at)
    ),
    Family(
        "kube_pod_start_time", "gauge", "Acceptance by the node, in seconds", _at(lambda row: row.state.accepted_at)
    ),
    Family("kube_pod_completion_time", "gauge", "End of the last container, in seconds", _at(_completed_at)),
    Family(
        "kube_pod_deletion_timestamp",
        "gauge",
        "Deadline of the requested deletion, in seconds",
        _at(lambda row: row.state.termination.deadline if row.state.termination is not None else 0),
    ),
    Family(
        "kube_pod_restart_policy",
        "gauge",
        "Restart policy",
        lambda row: ((label("type", row.state.manifest.spec.restart_policy), 1),),
    ),
    Family(
        "kube_pod_status_phase",
        "gauge",
        "Phase: 1 for the current one",
        _one_of("phase", _PHASES, lambda r: r.status.phase),
    ),
    Family("kube_pod_status_ready", "gauge", "Condition Ready", _one_of("condition", _CONDITIONS, _condition("Ready"))),
    Family(
        "kube_pod_status_scheduled",
        "gauge",
        "Condition PodScheduled",
        _one_of("condition", _CONDITIONS, _condition("PodScheduled")),
    ),
    Family(
        "kube_pod_status_reason",
        "gauge",
        "Reason of the phase: 1 for the current one",
        _one_of("reason", _REASONS, lambda row: row.status.reason, other=True),
    ),
    Family(
        "kube_pod_status_qos_class",
        "gauge",
        "QoS class: 1 for the current one",
        _one_of("qos_class", _QOS_CLASSES, lambda row: row.status.qos_class or ""),
    ),
)
_APP = containers.families("kube_pod_container")
_INIT = containers.families("kube_pod_init_container")

HEADS: tuple[str, ...] = (*(one.head() for one in _PODS), *(one.head() for one in (*_APP, *_INIT)))
"""The lines that precede the samples of each metric."""


def pieces(state: State, node: str) -> tuple[str, ...]:
    """Render the samples of one pod: one piece for each of `HEADS`."""
    status = pod_status(state)
    namespace, _, name = state.pod.partition("/")
    whose = {"namespace": namespace, "pod": name, "uid": state.uid}
    row, labels = Row(state, status, node), rendered(whose)
    return (
        *(family.lines(labels, row) for family in _PODS),
        *_of_containers(_APP, row, whose, init=False),
        *_of_containers(_INIT, row, whose, init=True),
    )


def _of_containers(
    families: Sequence[Family[containers.Row]], row: Row, whose: dict[str, str], *, init: bool
) -> Iterator[str]:
    statuses = row.status.init_container_statuses if init else row.status.container_statuses
    by_name = {one.name: one for one in statuses}
    states = {one.name: one for one in row.state.containers}
    rows = [
        (rendered({**whose, "container": one.name}), containers.Row(one, states[one.name], by_name[one.name], row.node))
        for _, one in definitions(row.state.manifest)
        if one.name in by_name
    ]
    for family in families:
        yield "".join([family.lines(labels, each) for labels, each in rows])
