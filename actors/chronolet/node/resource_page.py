"""The page /metrics/resource: what the node, its pods and their containers use, for those who scale by it. Pure.

Comes in: a v1alpha1 Summary as plain data. Goes out: Prometheus' text. Next: `pages`. Source:
pkg/kubelet/metrics/collectors/resource_metrics.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

Object = Mapping[str, Any]

_NANOSECONDS = 1e9
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


def resource_metrics(summary: Object) -> str:
    """The whole page."""
    samples = list(_samples(summary))
    return "".join(
        f"# HELP {name} {words}\n# TYPE {name} {kind}\n" + "".join(line for of, line in samples if of == name)
        for name, kind, words in _METRICS
    )


def _samples(summary: Object) -> Iterator[tuple[str, str]]:
    yield from _usage("node", summary["node"], {})
    for pod in summary["pods"]:
        whose = {"pod": pod["podRef"]["name"], "namespace": pod["podRef"]["namespace"]}
        yield from _usage("pod", pod, whose)
        for container in pod["containers"]:
            labels = {"container": container["name"], **whose}
            yield from _usage("container", container, labels)
            began = datetime.fromisoformat(container["startTime"]).timestamp()
            yield _sample("container_start_time_seconds", labels, began)
    yield _sample("resource_scrape_error", {}, 0)


def _usage(what: str, one: Object, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield _sample(f"{what}_cpu_usage_seconds_total", labels, one["cpu"]["usageCoreNanoSeconds"] / _NANOSECONDS)
    yield _sample(f"{what}_memory_working_set_bytes", labels, one["memory"]["workingSetBytes"])


def _sample(name: str, labels: Mapping[str, str], value: float) -> tuple[str, str]:
    """Names of pods and containers need no escaping."""
    written = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return name, f"{name}{{{written}}} {value}\n" if written else f"{name} {value}\n"
