"""Writes the Grafana dashboards: monitoring/dashboards/*.json.

Input: the panels in `DASHBOARDS`. Output: one JSON file for each dashboard. Next: Grafana's file provider, or a manual
import. After a change here, run `python scripts/dashboards.py`; a test compares the files with this module.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parents[1] / "monitoring" / "dashboards"
_WIDTH, _HEIGHT, _ROW = 8, 7, 24
_RATE = "$__rate_interval"


class Panel(NamedTuple):
    """One time series panel. `queries`: pairs of a PromQL query and its legend."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


class Dashboard(NamedTuple):
    """One dashboard. `variables`: the `label_values` query of each variable, by name."""

    uid: str
    title: str
    variables: dict[str, str]
    panels: tuple[Panel, ...]


def _panel(title: str, unit: str, *queries: tuple[str, str]) -> Panel:
    return Panel(title, unit, queries)


_HERE = 'instance=~"$instance"'
_POD = 'namespace="$namespace", pod="$pod"'
_CONTAINER = f'{_POD}, container!="", container!="POD"'


def _rate(metric: str, by: str, where: str = _HERE) -> str:
    return f"sum by ({by}) (rate({metric}{{{where}}}[{_RATE}]))"


def _p99(metric: str, by: str = "instance") -> str:
    return f"histogram_quantile(0.99, sum by (le, {by}) (rate({metric}_bucket{{{_HERE}}}[{_RATE}])))"


def _mean(metric: str) -> str:
    return f"rate({metric}_sum{{{_HERE}}}[{_RATE}]) / rate({metric}_count{{{_HERE}}}[{_RATE}])"


_THROTTLED = " / ".join(
    _rate(f"container_cpu_cfs_{name}_total", "container", _CONTAINER) for name in ("throttled_periods", "periods")
)

NODE = Dashboard(
    "chronolet-node",
    "chronolet / Node",
    {"instance": 'label_values(up{job="kubelet"}, instance)'},
    (
        _panel("Agent up", "short", (f'up{{job="kubelet", {_HERE}}}', "{{instance}}")),
        _panel(
            "Node conditions",
            "short",
            (f'kube_node_status_condition{{{_HERE}, status="true"}}', "{{condition}}"),
        ),
        _panel(
            "Pods by phase",
            "short",
            (f"sum by (phase) (kube_pod_status_phase{{{_HERE}}})", "{{phase}}"),
            (f'sum(kube_node_status_allocatable{{{_HERE}, resource="pods"}})', "allowed"),
        ),
        _panel(
            "CPU",
            "short",
            (f'rate(container_cpu_usage_seconds_total{{{_HERE}, id="/"}}[{_RATE}])', "used"),
            (f'sum(kube_pod_container_resource_requests{{{_HERE}, resource="cpu"}})', "requested"),
            (f'kube_node_status_allocatable{{{_HERE}, resource="cpu"}}', "allocatable"),
        ),
        _panel(
            "Memory",
            "bytes",
            (f'container_memory_working_set_bytes{{{_HERE}, id="/"}}', "working set"),
            (f'sum(kube_pod_container_resource_requests{{{_HERE}, resource="memory"}})', "requested"),
            (f'kube_node_status_allocatable{{{_HERE}, resource="memory"}}', "allocatable"),
        ),
        _panel(
            "Containers by state",
            "short",
            (f"kubelet_running_containers{{{_HERE}}}", "{{container_state}}"),
        ),
        _panel(
            "Pod starts, 99th percentile",
            "s",
            (
                _p99("kubelet_pod_start_duration_seconds"),
                "start",
            ),
            (
                _p99("kubelet_pod_worker_duration_seconds", "operation_type"),
                "{{operation_type}}",
            ),
        ),
        _panel(
            "Calls to Docker",
            "ops",
            (
                _rate("kubelet_runtime_operations_total", "operation_type"),
                "{{operation_type}}",
            ),
        ),
        _panel(
            "Failed calls to Docker",
            "ops",
            (
                _rate("kubelet_runtime_operations_errors_total", "operation_type"),
                "{{operation_type}}",
            ),
        ),
        _panel(
            "Relists",
            "s",
            (
                _p99("kubelet_pleg_relist_duration_seconds"),
                "duration",
            ),
            (
                _p99("kubelet_pleg_relist_interval_seconds"),
                "interval",
            ),
        ),
        _panel(
            "Volume operations",
            "ops",
            (
                _rate("storage_operation_duration_seconds_count", "operation_name, volume_plugin"),
                "{{operation_name}} {{volume_plugin}}",
            ),
        ),
        _panel(
            "KubeEvents",
            "ops",
            (f"rate(chronolet_kube_events_recorded_total{{{_HERE}}}[{_RATE}])", "recorded"),
            (
                _rate("chronolet_kube_event_deliveries_total", "sink, outcome"),
                "{{sink}} {{outcome}}",
            ),
        ),
    ),
)

PODS = Dashboard(
    "chronolet-pods",
    "chronolet / Pods",
    {
        "namespace": "label_values(kube_pod_info, namespace)",
        "pod": 'label_values(kube_pod_info{namespace="$namespace"}, pod)',
    },
    (
        _panel("Phase", "short", (f"kube_pod_status_phase{{{_POD}}} == 1", "{{phase}}")),
        _panel(
            "Ready",
            "short",
            (f'kube_pod_status_ready{{{_POD}, condition="true"}}', "pod"),
            (f"kube_pod_container_status_ready{{{_POD}}}", "{{container}}"),
        ),
        _panel("Restarts", "short", (f"kube_pod_container_status_restarts_total{{{_POD}}}", "{{container}}")),
        _panel(
            "Reasons",
            "short",
            (f"kube_pod_container_status_waiting_reason{{{_POD}}}", "{{container}} waits: {{reason}}"),
            (f"kube_pod_container_status_last_terminated_reason{{{_POD}}}", "{{container}} ended: {{reason}}"),
        ),
        _panel(
            "CPU",
            "short",
            (
                _rate("container_cpu_usage_seconds_total", "container", _CONTAINER),
                "{{container}}",
            ),
            (f'kube_pod_container_resource_limits{{{_POD}, resource="cpu"}}', "{{container}} limit"),
        ),
        _panel(
            "CPU throttling",
            "percentunit",
            (
                _THROTTLED,
                "{{container}}",
            ),
        ),
        _panel(
            "Memory",
            "bytes",
            (f"container_memory_working_set_bytes{{{_CONTAINER}}}", "{{container}}"),
            (f'kube_pod_container_resource_limits{{{_POD}, resource="memory"}}', "{{container}} limit"),
        ),
        _panel(
            "Network",
            "Bps",
            (f"sum(rate(container_network_receive_bytes_total{{{_POD}}}[{_RATE}]))", "received"),
            (f"-sum(rate(container_network_transmit_bytes_total{{{_POD}}}[{_RATE}]))", "sent"),
        ),
        _panel(
            "Probes",
            "ops",
            (
                _rate("prober_probe_total", "container, probe_type, result", _POD),
                "{{container}} {{probe_type}} {{result}}",
            ),
        ),
    ),
)

KERNEL = Dashboard(
    "chronolet-kernel",
    "chronolet / Kernel",
    {"instance": "label_values(chronolet_lease_valid, instance)"},
    (
        _panel(
            "Lease",
            "short",
            (f"chronolet_lease_valid{{{_HERE}}}", "{{instance}} valid"),
            (f"chronolet_lease_lapses_total{{{_HERE}}}", "{{instance}} lapses"),
        ),
        _panel(
            "Shards",
            "short",
            (f"chronolet_shards_owned{{{_HERE}}}", "{{instance}} owned"),
            (f"chronolet_shards_quarantined{{{_HERE}}}", "{{instance}} quarantined"),
        ),
        _panel(
            "Shards acquired and left",
            "short",
            (f"sum by (instance, kind) (chronolet_shards_acquired_total{{{_HERE}}})", "{{instance}} acquired {{kind}}"),
            (f"sum by (instance, kind) (chronolet_shards_left_total{{{_HERE}}})", "{{instance}} left {{kind}}"),
            (f"sum by (instance, kind) (chronolet_shards_moved_total{{{_HERE}}})", "{{instance}} moved {{kind}}"),
        ),
        _panel(
            "Steps",
            "ops",
            (_rate("chronolet_steps_total", "shard"), "{{shard}}"),
        ),
        _panel(
            "Commits, 99th percentile",
            "s",
            (
                _p99("chronolet_step_duration_seconds"),
                "{{instance}}",
            ),
        ),
        _panel(
            "Batch sizes",
            "short",
            (
                _mean("chronolet_turn_messages"),
                "{{instance}} messages",
            ),
            (
                _mean("chronolet_step_events"),
                "{{instance}} events",
            ),
        ),
        _panel(
            "Waiting messages",
            "short",
            (f"chronolet_messages_waiting{{{_HERE}}}", "{{shard}} {{source}}"),
        ),
        _panel(
            "Age of the oldest waiting message",
            "s",
            (f"chronolet_message_oldest_seconds{{{_HERE}}}", "{{shard}} {{source}}"),
        ),
        _panel(
            "Effects running",
            "short",
            (f"sum by (kind, effect) (chronolet_effects_running{{{_HERE}}})", "{{kind}} {{effect}}"),
        ),
        _panel(
            "Age of the oldest effect",
            "s",
            (f"chronolet_effect_oldest_seconds{{{_HERE}}}", "{{kind}} {{effect}}"),
        ),
        _panel(
            "Ended effects",
            "ops",
            (
                _rate("chronolet_effects_total", "kind, outcome"),
                "{{kind}} {{outcome}}",
            ),
        ),
        _panel(
            "Failures",
            "short",
            (f"sum by (shard) (chronolet_host_restarts_total{{{_HERE}}})", "{{shard}} restarts"),
            (f"sum by (kind) (chronolet_dead_letters_total{{{_HERE}}})", "{{kind}} dead letters"),
            (f"sum by (shard, reason) (chronolet_steps_refused_total{{{_HERE}}})", "{{shard}} refused: {{reason}}"),
        ),
        _panel(
            "Replay",
            "s",
            (f"chronolet_recovery_duration_seconds{{{_HERE}}}", "{{instance}} last"),
            (f"chronolet_replay_seconds_total{{{_HERE}}}", "{{instance}} all"),
        ),
        _panel("Threads", "short", (f"chronolet_threads{{{_HERE}}}", "{{instance}}")),
        _panel(
            "Memory and CPU of the agent",
            "short",
            (f"process_resident_memory_bytes{{{_HERE}}}", "{{instance}} bytes"),
            (f"rate(process_cpu_seconds_total{{{_HERE}}}[{_RATE}])", "{{instance}} cores"),
        ),
    ),
)

DASHBOARDS = {"node": NODE, "pods": PODS, "kernel": KERNEL}


def rendered(one: Dashboard) -> str:
    """Return the JSON of a dashboard."""
    model = {
        "uid": one.uid,
        "title": one.title,
        "tags": ["chronolet"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_datasource(), *(_variable(*each) for each in one.variables.items())]},
        "panels": [_graph(number, each) for number, each in enumerate(one.panels)],
    }
    return json.dumps(model, indent=1) + "\n"


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(name: str, query: str) -> dict[str, Any]:
    several = name == "instance"
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": several,
        "includeAll": several,
    }


def _graph(number: int, one: Panel) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    column, row = number % (_ROW // _WIDTH), number // (_ROW // _WIDTH)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": one.title,
        "datasource": source,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT},
        "fieldConfig": {"defaults": {"unit": one.unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": source, "expr": query, "legendFormat": legend}
            for index, (query, legend) in enumerate(one.queries)
        ],
    }


if __name__ == "__main__":
    for name, one in DASHBOARDS.items():
        (FOLDER / f"{name}.json").write_text(rendered(one))
