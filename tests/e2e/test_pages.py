"""The node's HTTP pages as a dashboard reads them: a real agent, real pods."""

import http.client
import json
import socket
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.support.scratch import HANG_SECONDS

BUSY = "trap 'exit 0' TERM; while :; do :; done & wait"


def test_the_pages_tell_what_is_wanted_what_runs_and_what_it_uses(own_node: Node) -> None:
    node, port = own_node, free_port()
    node.start(port, "--housekeeping-interval", "1s")
    held = {"limits": {"cpu": "200m", "memory": "64Mi"}}
    node.write("web.yaml", a_pod("web", shell("app"), shell("busy", BUSY, resources=held)))
    node.wait_until_running("web")

    pods = page(port, "/pods")
    assert (pods["kind"], pods["apiVersion"]) == ("PodList", "v1")
    (web,) = pods["items"]
    assert json.loads(node.chronolet("get", "pod", "web", "-o", "json").out)["spec"] == web["spec"]
    assert web["status"]["phase"] == "Running"
    uid = web["metadata"]["uid"]

    (running,) = page(port, "/runningpods")["items"]
    assert running["metadata"] == {"name": "web", "namespace": "default", "uid": uid, "creationTimestamp": None}
    assert [one["name"] for one in running["spec"]["containers"]] == ["app", "busy"]

    used = page(port, "/stats/summary")
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

    # A second later it has been sampled twice: what is busy is seen to be.
    def busy() -> bool:
        (found,) = page(port, "/stats/summary")["pods"]
        rates = {one["name"]: one["cpu"].get("usageNanoCores", 0) for one in found["containers"]}
        return bool(rates["busy"] > 10_000_000 > rates["app"])

    node.journal.wait_for("a busy container", busy)
    _check_cadvisor(port, uid)
    assert page(port, "/configz")["kubeletconfig"]["readOnlyPort"] == port

    (node.folder / "web.yaml").unlink()
    node.wait_until_gone("web")
    node.journal.wait_for("no pods", lambda: page(port, "/pods")["items"] == page(port, "/runningpods")["items"] == [])

    node.engine.pause()
    try:
        assert status(port, "/pods") == (200, "application/json"), "the log alone is asked"
        assert status(port, "/healthz")[0] == 200
    finally:
        node.engine.resume()


def _check_cadvisor(port: int, uid: str) -> None:
    """By the selectors of the usual dashboards."""
    code, kind, body = _get(port, "/metrics/cadvisor")
    assert code == 200, body
    assert kind.startswith("text/plain")
    found = [one for family in text_string_to_metric_families(body.decode()) for one in family.samples]

    def of(name: str, container: str, **more: str) -> list[float]:
        wanted = {"namespace": "default", "pod": "web", "container": container, **more}
        return [one.value for one in found if one.name == name and wanted.items() <= one.labels.items()]

    for container in ("app", "busy", "POD", ""):
        assert len(of("container_cpu_usage_seconds_total", container, cpu="total")) == 1
        (working,) = of("container_memory_working_set_bytes", container)
        assert working > 0
    (throttled,) = of("container_cpu_cfs_throttled_periods_total", "busy")
    assert throttled > 0
    assert of("container_cpu_cfs_throttled_periods_total", "app") == [], "it has no limit"
    assert of("container_spec_cpu_quota", "busy") == [20_000]
    assert of("container_spec_memory_limit_bytes", "busy") == [64 << 20]
    (received,) = of("container_network_receive_bytes_total", "POD", interface="eth0")
    assert received > 0
    paths = {one.labels["id"] for one in found if one.labels.get("pod") == "web"}
    assert len(paths) == 4
    assert all(f"pod{uid}" in path for path in paths)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def status(port: int, path: str) -> tuple[int, str]:
    return _get(port, path)[:2]


def page(port: int, path: str) -> Any:
    code, kind, body = _get(port, path)
    assert (code, kind) == (200, "application/json"), body
    return json.loads(body)


def _get(port: int, path: str) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read()
    finally:
        connection.close()
