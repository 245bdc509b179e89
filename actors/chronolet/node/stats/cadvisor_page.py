"""The page /metrics/cadvisor: the usage of each cgroup, with cAdvisor's names and the kubelet's labels. Pure.

Input: a `Snapshot`. Output: Prometheus text; samples of usage have a timestamp, their sampling time. Next: `pages`.
Source: cAdvisor's metrics/prometheus.go, pkg/kubelet/server/server.go (containerPrometheusLabelsFunc). A pod's network
usage is that of its sandbox, the container named POD; the pod's own cgroup has empty container and image labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chronolet.node.stats.cadvisor_metrics import (
    CONTAINER,
    LABELLED,
    MACHINE,
    METRICS,
    NODE,
    POD,
    SANDBOX,
    Labelled,
    Metric,
    Row,
    escaped,
)
from chronolet.node.stats.samples import ContainerSample, PodSample, Snapshot
from chronolet.ports.machine.usage import FileSystem


def cadvisor_metrics(snapshot: Snapshot) -> bytes:
    """Render the page, with all samples of a metric together, as the format requires."""
    return b"".join(piece.encode() for piece in _pieces(snapshot))


def _pieces(snapshot: Snapshot) -> Iterator[str]:
    """Yield one metric at a time: the page may have several megabytes, and must not be in memory twice, as text and as
    bytes.
    """
    rows = list(_rows(snapshot))
    for one in METRICS:
        yield _metric(one.name, one.kind, one.help, _lines(one, rows))
    for labelled in LABELLED:
        yield _metric(labelled.name, labelled.kind, labelled.help, _labelled_lines(labelled, rows))
    for machine in MACHINE:
        yield _metric(machine.name, "gauge", machine.help, [f"{machine.name} {machine.read(snapshot.machine)}\n"])
    wrong = "1 if a cgroup could not be read, 0 otherwise"
    yield _metric("container_scrape_error", "gauge", wrong, [f"container_scrape_error {int(snapshot.errors > 0)}\n"])


def _metric(name: str, kind: str, description: str, lines: list[str]) -> str:
    """Render a metric; empty if it has no samples."""
    return "".join([f"# HELP {name} {description}\n# TYPE {name} {kind}\n", *lines]) if lines else ""


def _lines(metric: Metric, rows: list[Row]) -> list[str]:
    name, read, on, extra = metric.name, metric.read, metric.rows, metric.extra
    values = [(row, read(row)) for row in rows if row.what in on]
    if not metric.timed:
        return [f"{name}{{{row.labels}{extra}}} {value}\n" for row, value in values if value is not None]
    return [f"{name}{{{row.labels}{extra}}} {value} {row.usage.at}\n" for row, value in values if value is not None]


def _labelled_lines(metric: Labelled, rows: list[Row]) -> list[str]:
    name, read = metric.name, metric.read
    return [f"{name}{{{row.labels}{label}}} {value} {row.usage.at}\n" for row in rows for label, value in read(row)]


def _rows(snapshot: Snapshot) -> Iterator[Row]:
    yield Row(NODE, _labels({}, "/"), snapshot.node.usage, snapshot.machine.booted_at)
    for pod in snapshot.pods:
        whose = {"namespace": pod.namespace, "pod": pod.name}
        if pod.whole is not None:
            yield Row(POD, _labels(whose, pod.whole.path), pod.whole.usage, _began_at(pod))
        for one in pod.containers:
            yield _row(CONTAINER, one, whose, snapshot.images)
        if pod.sandbox is not None:
            yield _row(SANDBOX, pod.sandbox, whose, snapshot.images)


def _row(what: str, one: ContainerSample, whose: Mapping[str, str], images: FileSystem | None) -> Row:
    state, measured = one.container, one.measured
    own = {"container": one.name, "image": state.image, "name": state.name, **whose}
    labels = _labels(own, measured.path)
    return Row(what, labels, measured.usage, state.created_at, one.layer, one.log_bytes or 0, images)


def _began_at(pod: PodSample) -> int:
    return min(one.container.created_at for one in pod.all_containers)


def _labels(values: Mapping[str, str], path: str) -> str:
    """Render the labels of a series. Every series has the same labels, sorted by name; the missing ones are empty."""
    found = {"container": "", "id": path, "image": "", "name": "", "namespace": "", "pod": "", **values}
    return ",".join(f'{name}="{escaped(value)}"' for name, value in found.items())
