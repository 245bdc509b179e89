"""The page /metrics/resource: usage of the node, its pods and containers, for autoscalers. Pure.

Input: a `Snapshot`. Output: Prometheus text; samples of usage have a timestamp, their sampling time. Next: `pages`.
Source: pkg/kubelet/metrics/collectors/resource_metrics.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from chronolet.node.stats.cadvisor_metrics import escaped
from chronolet.node.stats.samples import Snapshot
from chronolet.node.stats.summary import latest, sum_of_containers
from chronolet.ports.machine.usage import Usage

_NANOSECONDS, _MILLISECONDS = 1e9, 1e3
_METRICS = (
    ("node_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the node in core-seconds"),
    ("node_memory_working_set_bytes", "gauge", "Current working set of the node in bytes"),
    ("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the container in core-seconds"),
    ("container_memory_working_set_bytes", "gauge", "Current working set of the container in bytes"),
    ("container_start_time_seconds", "gauge", "Start time of the container since unix epoch in seconds"),
    ("pod_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the pod in core-seconds"),
    ("pod_memory_working_set_bytes", "gauge", "Current working set of the pod in bytes"),
    ("resource_scrape_error", "gauge", "1 if there was an error while getting container metrics, 0 otherwise"),
)


def resource_metrics(snapshot: Snapshot) -> str:
    """Render the page."""
    found: dict[str, list[str]] = defaultdict(list)
    _add(found, "node", snapshot.machine.usage, {})
    for pod in snapshot.pods:
        whose = {"pod": pod.name, "namespace": pod.namespace}
        _add(found, "pod", (pod.whole or sum_of_containers(pod)).usage, whose)
        for one in latest(pod.containers):
            labels = {"container": one.name, **whose}
            _add(found, "container", one.measured.usage, labels)
            began = f"container_start_time_seconds{_written(labels)} {one.container.created_at / _MILLISECONDS}\n"
            found["container_start_time_seconds"].append(began)
    found["resource_scrape_error"] = [f"resource_scrape_error {int(snapshot.errors > 0)}\n"]
    return "".join(
        f"# HELP {name} {description}\n# TYPE {name} {kind}\n" + "".join(found[name])
        for name, kind, description in _METRICS
    )


def _add(found: dict[str, list[str]], what: str, usage: Usage, labels: Mapping[str, str]) -> None:
    written = _written(labels)
    cpu, memory = f"{what}_cpu_usage_seconds_total", f"{what}_memory_working_set_bytes"
    found[cpu].append(f"{cpu}{written} {usage.cpu_nanoseconds / _NANOSECONDS} {usage.at}\n")
    found[memory].append(f"{memory}{written} {usage.working_set_bytes} {usage.at}\n")


def _written(labels: Mapping[str, str]) -> str:
    written = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
    return f"{{{written}}}" if written else ""
