"""Each alert fires when its fault really occurs, and every panel of the dashboards has data.

The tests share a node, and their order matters: the last ones stop its servers and its agent.
"""

from __future__ import annotations

import json
import re

import pytest

from chronolet_schemas.keys import Keys, Shard
from tests.e2e.http_pages import get
from tests.e2e.monitoring.conftest import PORT, Watched
from tests.e2e.monitoring.prometheus import MONITORING, alerts, hurried
from tests.support.scratch import wait_until

SEEN: set[str] = set()
"""The names of the alerts that have fired."""


def sees(watched: Watched, name: str, **labels: str) -> None:
    watched.prometheus.wait_for_alert(name, **labels)
    SEEN.add(name)


@pytest.mark.parametrize(
    ("alert", "labels"),
    [
        ("PodCrashLooping", {"pod": "crashing", "container": "app"}),
        ("PodNotReady", {"pod": "unready"}),
        ("PodFailed", {"pod": "rejected"}),
        ("ContainerWaiting", {"pod": "pulling", "reason": "ContainerCreating"}),
        ("ContainerOutOfMemory", {"pod": "hog"}),
        ("ContainerThrottled", {"pod": "busy"}),
        ("NodeFull", {"node": "watched"}),
        ("EffectStuck", {"effect": "EnsureImage"}),
        ("KubeEventsNotDelivered", {"sink": "webhook"}),
    ],
)
def test_faults_of_pods(watched: Watched, alert: str, labels: dict[str, str]) -> None:
    sees(watched, alert, **labels)


def test_a_sound_pod_raises_no_alert(watched: Watched) -> None:
    assert watched.prometheus.query('kube_pod_status_phase{pod="web", phase="Running"} == 1')
    assert not [one for found in watched.prometheus.firing().values() for one in found if one.get("pod") == "web"]
    assert {"DeadLetters", "HostRestarts", "ShardQuarantined"}.isdisjoint(watched.prometheus.firing())


EMPTY_UNTIL_A_FAULT = ("kubelet_runtime_operations_errors_total", "chronolet_steps_refused_total")
"""Counters that have no series before the first fault; the tests of these faults query them."""


def queries(dashboard: str) -> list[str]:
    model = json.loads((MONITORING / "dashboards" / f"{dashboard}.json").read_text())
    return [target["expr"] for panel in model["panels"] for target in panel["targets"]]


def wait_for_data(watched: Watched, metric: str) -> None:
    """Wait until each query of the dashboards `node` and `kernel` that reads this metric returns data."""
    found = [query for dashboard in ("node", "kernel") for query in queries(dashboard) if metric in query]
    assert found
    for query in found:
        wait_until(lambda query=query: bool(watched.prometheus.query(_filled(query, ""))), f"data for {query}")  # type: ignore[misc]


@pytest.mark.parametrize("dashboard", ["node", "pods", "kernel"])
def test_every_panel_has_data(watched: Watched, dashboard: str) -> None:
    found = queries(dashboard)
    assert len(found) > 10
    pods = {"unready", "crashing", "busy"} if dashboard == "pods" else {""}
    for query in found:
        if not any(name in query for name in EMPTY_UNTIL_A_FAULT):
            wait_until(
                lambda query=query: any(watched.prometheus.query(_filled(query, name)) for name in pods),  # type: ignore[misc]
                f"data for {query}",
            )


def _filled(query: str, pod: str) -> str:
    """Replace the dashboard's variables, as Grafana does."""
    return hurried(query.replace("$instance", ".+").replace("$namespace", "default").replace("$pod", pod))


def test_recording_rules_have_data(watched: Watched) -> None:
    records = set(re.findall(r"record: (\S+)", (MONITORING / "rules" / "recording.yml").read_text()))
    assert len(records) > 5
    for record in records:
        wait_until(lambda record=record: bool(watched.prometheus.query(record)), f"data for {record}")  # type: ignore[misc]


def test_a_message_that_cannot_be_decoded(watched: Watched) -> None:
    mailbox = Keys(watched.node.name).mailbox(Shard("manifests"))
    watched.server.client().xadd(mailbox, {"type": "no.Such@1", "entity": "x", "request": "r", "data": b"\xc1"})
    sees(watched, "DeadLetters", kind="manifests")


def test_a_host_that_fails(watched: Watched) -> None:
    """The shard's version in Redis is changed to one that its host does not expect."""
    watched.server.client().hincrby(Keys(watched.node.name).shard(Shard("manifests")), "version", 1)
    watched.node.write("bad.yaml", "no manifest")
    sees(watched, "HostRestarts", shard="manifests")
    wait_for_data(watched, "chronolet_steps_refused_total")


def test_a_host_that_cannot_commit_its_step(watched: Watched) -> None:
    """The server is full and refuses the step with the folder's first change, so the second change has to wait."""
    watched.server.client().config_set("maxmemory", "1")
    try:
        for name in ("first.yaml", "second.yaml"):
            watched.node.write(name, "no manifest")
            watched.node.wait_for_log("store call failed, retrying")
        sees(watched, "MessagesWaiting")
    finally:
        watched.server.client().config_set("maxmemory", "0")


def test_a_shard_whose_key_is_broken(watched: Watched) -> None:
    client, key = watched.server.client(), Keys(watched.node.name).shard(Shard("kube_events"))
    client.rename(key, f"{key}:kept")
    client.set(key, "broken")
    sees(watched, "ShardQuarantined")
    client.delete(key)
    client.rename(f"{key}:kept", key)
    wait_until(lambda: get(watched.node, PORT, "/readyz").status == 200, "the shard's return")


def test_an_engine_that_is_down(watched: Watched) -> None:
    watched.node.engine.kill9()
    try:
        sees(watched, "RuntimeErrors")
        wait_for_data(watched, "kubelet_runtime_operations_errors_total")
        sees(watched, "NodeNotReady", node="watched")
    finally:
        watched.node.engine.start()
    wait_until(lambda: "NodeNotReady" not in watched.prometheus.firing(), "a ready node")


def test_a_redis_that_does_not_answer(watched: Watched) -> None:
    watched.server.pause()
    try:
        sees(watched, "LeaseInvalid")
    finally:
        watched.server.resume()
    sees(watched, "LeaseLapsed")


def test_an_agent_that_is_dead(watched: Watched) -> None:
    watched.node.kill9()
    sees(watched, "AgentDown")


def test_no_alert_was_left_out(watched: Watched) -> None:
    assert {one["alert"] for one in alerts()} == SEEN
