"""The metrics of app and init containers on the page /metrics/state. Pure.

Input: a container's state, definition and status. Output: samples. Next: `pods`. Source: kube-state-metrics'
internal/store/pod.go. The names of the metrics of init containers, sidecars included, begin with
`kube_pod_init_container_`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from chronolet.node.state_page.text import Family, Sample, label, resource
from chronolet.pod.state import Container
from chronolet.pod.status.api import ContainerStatus
from chronolet.rules.resources.resources import Amounts, limits, requests
from chronolet_schemas.podspec import Container as Definition

_MILLI = 1000


class Row(NamedTuple):
    """One container."""

    definition: Definition
    state: Container
    status: ContainerStatus
    node: str
    """The name of the node."""


def families(prefix: str) -> tuple[Family[Row], ...]:
    """Return the metrics of containers. `prefix`: `kube_pod_container` or `kube_pod_init_container`."""
    return tuple(
        Family(f"{prefix}_{name}", kind, f"{description} (container)", read)
        for name, kind, description, read in _FAMILIES
    )


def _info(row: Row) -> Iterable[Sample]:
    one = row.status
    labels = (
        label("image", one.image)
        + label("image_spec", row.definition.image)
        + label("image_id", one.image_id)
        + label("container_id", one.container_id)
    )
    return ((labels, 1),)


def _flag(of: Callable[[ContainerStatus], object]) -> Callable[[Row], Iterable[Sample]]:
    return lambda row: (("", int(bool(of(row.status)))),)


def _waiting_reason(row: Row) -> Iterable[Sample]:
    now = row.status.state.waiting
    return ((label("reason", now.reason), 1),) if now is not None else ()


def _terminated_reason(row: Row) -> Iterable[Sample]:
    now = row.status.state.terminated
    return ((label("reason", now.reason), 1),) if now is not None else ()


def _last_reason(row: Row) -> Iterable[Sample]:
    last = row.status.last_state.terminated
    return ((label("reason", last.reason), 1),) if last is not None else ()


def _last_exit_code(row: Row) -> Iterable[Sample]:
    last = row.status.last_state.terminated
    return (("", last.exit_code),) if last is not None else ()


def _last_time(row: Row) -> Iterable[Sample]:
    ended = row.state.exit
    if row.status.last_state.terminated is None or ended is None or not ended.finished_at:
        return ()
    return (("", ended.finished_at / _MILLI),)


def _started(row: Row) -> Iterable[Sample]:
    now = row.status.state
    if now.running is not None:
        at = row.state.started_at
    else:
        at = row.state.exit.started_at if now.terminated is not None and row.state.exit is not None else 0
    return (("", at / _MILLI),) if at else ()


def _resources(of: Callable[[Definition], Amounts]) -> Callable[[Row], Iterator[Sample]]:
    def read(row: Row) -> Iterator[Sample]:
        for name, amount in of(row.definition).items():
            yield label("node", row.node) + resource(name), amount / _MILLI if name == "cpu" else amount

    return read


_FAMILIES: tuple[tuple[str, str, str, Callable[[Row], Iterable[Sample]]], ...] = (
    ("info", "gauge", "Images and id", _info),
    ("status_waiting", "gauge", "Whether it is waiting", _flag(lambda one: one.state.waiting)),
    ("status_waiting_reason", "gauge", "Why it is waiting", _waiting_reason),
    ("status_running", "gauge", "Whether it is running", _flag(lambda one: one.state.running)),
    ("status_terminated", "gauge", "Whether it has terminated", _flag(lambda one: one.state.terminated)),
    ("status_terminated_reason", "gauge", "Why it has terminated", _terminated_reason),
    ("status_last_terminated_reason", "gauge", "Why its last run ended", _last_reason),
    ("status_last_terminated_exitcode", "gauge", "Exit code of its last run", _last_exit_code),
    ("status_last_terminated_timestamp", "gauge", "End of its last run since the epoch in seconds", _last_time),
    ("status_ready", "gauge", "Whether it is ready", _flag(lambda one: one.ready)),
    (
        "status_restarts_total",
        "counter",
        "Number of restarts",
        lambda row: (("", row.status.restart_count or 0),),
    ),
    ("state_started", "gauge", "Start of its current or final run since the epoch in seconds", _started),
    ("resource_requests", "gauge", "Requested amount of a resource", _resources(requests)),
    ("resource_limits", "gauge", "Limit of a resource", _resources(limits)),
)
