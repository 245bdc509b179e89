"""/metrics/resource from a Summary."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from chronolet.node.resource_page import resource_metrics


def used(seconds: int, working: int, **more: Any) -> dict[str, Any]:
    return {"cpu": {"usageCoreNanoSeconds": seconds * 10**9}, "memory": {"workingSetBytes": working}, **more}


def test_what_the_node_its_pods_and_containers_use() -> None:
    container = used(2, 20, name="app", startTime="2027-01-15T08:00:00Z")
    pod = used(3, 30, podRef={"name": "web", "namespace": "default"}, containers=[container])
    text = resource_metrics({"node": used(9, 90), "pods": [pod]})
    found = {
        (one.name, *sorted(one.labels.items())): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }
    whose = (("namespace", "default"), ("pod", "web"))
    app = (("container", "app"), *whose)
    assert found == {
        ("node_cpu_usage_seconds_total",): 9,
        ("node_memory_working_set_bytes",): 90,
        ("pod_cpu_usage_seconds_total", *whose): 3,
        ("pod_memory_working_set_bytes", *whose): 30,
        ("container_cpu_usage_seconds_total", *app): 2,
        ("container_memory_working_set_bytes", *app): 20,
        ("container_start_time_seconds", *app): 1_800_000_000,
        ("resource_scrape_error",): 0,
    }
