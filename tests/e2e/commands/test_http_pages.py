"""The node's HTTP pages as a dashboard reads them: a real agent, real pods."""

import json
from collections.abc import Callable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.e2e.http_pages import get, status
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod

PORT = 10255
"""A port in the engine's network namespace, where no other program uses it."""
_BUSY = 503
BUSY = "trap 'exit 0' TERM; while :; do :; done & wait"


def test_the_pages_show_the_pods_what_runs_and_what_it_uses(own_node: Node) -> None:
    node = own_node
    node.start(PORT, "--housekeeping-interval", "1s", in_network=True)
    held = {"limits": {"cpu": "50m", "memory": "64Mi"}}  # so low that it is throttled even on a busy machine
    node.write("web.yaml", a_pod("web", shell("app"), shell("busy", BUSY, resources=held)))
    node.wait_until_running("web")

    pods = page(node, "/pods", lambda found: phases(found) == ["Running"])
    assert (pods["kind"], pods["apiVersion"]) == ("PodList", "v1")
    (web,) = pods["items"]
    assert json.loads(node.chronolet("get", "pod", "web", "-o", "json").out)["spec"] == web["spec"]
    uid = web["metadata"]["uid"]

    runs = page(node, "/runningpods", lambda found: [len(one["spec"]["containers"]) for one in found["items"]] == [2])
    (running,) = runs["items"]
    assert running["metadata"] == {"name": "web", "namespace": "default", "uid": uid, "creationTimestamp": None}
    assert [one["name"] for one in running["spec"]["containers"]] == ["app", "busy"]

    # A container that has just started appears on the page after at most one sampling round.
    used = page(node, "/stats/summary", lambda found: [len(one["containers"]) for one in found["pods"]] == [2])
    assert used["node"]["nodeName"] == node.name
    assert used["node"]["cpu"]["usageCoreNanoSeconds"] > 0
    assert 0 < used["node"]["memory"]["workingSetBytes"] <= used["node"]["memory"]["usageBytes"]
    assert used["node"]["fs"]["capacityBytes"] > used["node"]["fs"]["usedBytes"] > 0
    (of_web,) = used["pods"]
    assert of_web["podRef"] == {"name": "web", "namespace": "default", "uid": uid}
    assert {one["name"] for one in of_web["containers"]} == {"app", "busy"}
    assert of_web["cpu"]["usageCoreNanoSeconds"] >= sum(
        one["cpu"]["usageCoreNanoSeconds"] for one in of_web["containers"]
    )
    assert [one["name"] for one in of_web["network"]["interfaces"]] == ["eth0"]
    assert of_web["network"]["name"] == "eth0"

    # A second later it has been sampled twice, and its CPU usage is shown.
    def busy() -> bool:
        (found,) = page(node, "/stats/summary")["pods"]
        rates = {one["name"]: one["cpu"].get("usageNanoCores", 0) for one in found["containers"]}
        return bool(rates["busy"] > 10_000_000 > rates["app"])

    node.journal.wait_for("a busy container", busy)
    _check_cadvisor(node, uid)
    assert page(node, "/configz")["kubeletconfig"]["readOnlyPort"] == PORT

    (node.folder / "web.yaml").unlink()
    node.wait_until_gone("web")
    node.journal.wait_for("no pods", lambda: page(node, "/pods")["items"] == page(node, "/runningpods")["items"] == [])

    node.engine.pause()
    try:
        assert page(node, "/pods")["items"] == [], "the page is made from the log alone"
        node.journal.wait_for("the node to be healthy", lambda: status(node, PORT, "/healthz")[0] == 200)
    finally:
        node.engine.resume()


def phases(found: Any) -> list[str]:
    return [one["status"]["phase"] for one in found["items"]]


def _check_cadvisor(node: Node, uid: str) -> None:
    """Check the metrics with the label selectors of common dashboards."""
    found: list[Sample] = []

    def of(name: str, container: str, **more: str) -> list[float]:
        wanted = {"namespace": "default", "pod": "web", "container": container, **more}
        return [one.value for one in found if one.name == name and wanted.items() <= one.labels.items()]

    def has_all() -> bool:
        """Read the metrics; return whether both counters have increased."""
        answer = get(node, PORT, "/metrics/cadvisor")
        if answer.status == _BUSY:
            return False
        assert answer.status == 200, answer.body
        assert answer.headers["Content-Type"].startswith("text/plain")
        families = text_string_to_metric_families(answer.body.decode())
        found[:] = [one for family in families for one in family.samples]
        throttled = of("container_cpu_cfs_throttled_periods_total", "busy")
        received = of("container_network_receive_bytes_total", "POD", interface="eth0")
        return throttled > [0] and received > [0]

    node.journal.wait_for("throttled periods and received bytes", has_all)
    for container in ("app", "busy", "POD", ""):
        assert len(of("container_cpu_usage_seconds_total", container, cpu="total")) == 1
        (working,) = of("container_memory_working_set_bytes", container)
        assert working > 0
    (throttled,) = of("container_cpu_cfs_throttled_periods_total", "busy")
    assert throttled > 0
    assert of("container_cpu_cfs_throttled_periods_total", "app") == [], "it has no limit"
    assert of("container_spec_cpu_quota", "busy") == [5_000]
    assert of("container_spec_memory_limit_bytes", "busy") == [64 << 20]
    (received,) = of("container_network_receive_bytes_total", "POD", interface="eth0")
    assert received > 0
    paths = {one.labels["id"] for one in found if one.labels.get("pod") == "web"}
    assert len(paths) == 4
    assert all(f"pod{uid}" in path for path in paths)


def page(node: Node, path: str, condition: Callable[[Any], bool] = lambda _: True) -> Any:
    """Return the page once the condition holds for it: recent changes may be missing at first."""

    def found() -> Any:
        answer = get(node, PORT, path)
        if answer.status == _BUSY:
            return None
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json"), answer.body
        content = json.loads(answer.body)
        return content if condition(content) else None

    return node.journal.wait_for(path, found)
