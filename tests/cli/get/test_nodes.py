"""`get nodes` and `describe node`: the local node as its log describes it, with and without an agent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chronolet.pod.admission import acceptance
from chronolet_schemas import kube_events, pleg, podspec, qos
from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard
from chronolet_schemas.podspec import Container, ObjectMeta, Pod, PodSpec, ResourceRequirements
from tests.cli.support.written_node import NODE, NOON, WrittenNode
from tests.deciders.qos.nodes import GIB, node

PLEG = Shard("pleg")
SYSTEM = qos.System(
    machine_id="m1",
    kernel_version="6.1.0",
    os_image="Debian 12",
    operating_system="linux",
    architecture="amd64",
    container_runtime_version="docker://26.1.5",
    agent_version="0.1.0",
    internal_ip="192.0.2.7",
    hostname=NODE,
    storage_bytes=GIB,
)


def accepted(name: str, **resources: Any) -> Event:
    one = Container(name="app", image="i", resources=ResourceRequirements(**resources))
    manifest = podspec.defaulted(Pod(metadata=ObjectMeta(name=name), spec=PodSpec(containers=(one,))))
    (event, *_) = acceptance.accepted(uid=name, source="apply", digest="d", manifest=manifest, now=NOON)
    return event


@pytest.fixture
def written() -> WrittenNode:
    """A node whose agent has stopped."""
    one = WrittenNode()
    described = node(name=NODE, labels={"disk": "ssd", "kubernetes.io/os": "linux"}, system=SYSTEM)
    one.write("qos/node", qos.NodeDescribed(node=described))
    one.write("pleg/node", pleg.RelistWorking(containers=0))
    one.write(
        "pleg/node",
        kube_events.Recorded(
            object_kind="Node",
            name=NODE,
            severity="Normal",
            reason="NodeReady",
            message="Node n status is now: NodeReady",
        ),
    )
    one.write("pod/default/web", accepted("web", requests={"cpu": "500m", "memory": "2Gi"}, limits={"cpu": "1"}))
    one.write("pod/default/rest", accepted("rest"))
    one.now += 120_000
    return one


def with_agent(one: WrittenNode) -> WrittenNode:
    one.store.renew("p1", "{}", 600_000)
    one.store.acquire(PLEG, "", "p1", 1)
    return one


def ready(one: WrittenNode) -> tuple[str, str, str]:
    shown = json.loads(one.run("get", "node", NODE, "-o", "json").output)
    (found,) = [each for each in shown["status"]["conditions"] if each["type"] == "Ready"]
    return found["status"], found["reason"], found["message"]


def test_the_columns_are_those_of_kubectl(written: WrittenNode) -> None:
    assert with_agent(written).run("get", "nodes").output == (
        "NAME     STATUS   ROLES    AGE   VERSION\nnode-1   Ready    <none>   2m    v0.1.0\n"
    )
    wide = written.run("get", "nodes", "-o", "wide").output.splitlines()
    assert wide[0].split()[-5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]
    assert wide[1].endswith("192.0.2.7     <none>        Debian 12   6.1.0            docker://26.1.5")
    assert written.run("get", "no", "-o", "name").output == "node/node-1\n"
    labelled = written.run("get", "nodes", "--show-labels", "--no-headers", "-l", "disk=ssd").output
    assert labelled.endswith("disk=ssd,kubernetes.io/os=linux\n")
    assert written.run("get", "nodes", "-l", "disk=hdd").output == ""
    other = written.run("get", "node", "other")
    assert (other.status, other.output) == (1, "")
    assert 'nodes "other" not found' in other.errors


def test_a_node_as_json_is_a_v1_node(written: WrittenNode) -> None:
    shown = json.loads(with_agent(written).run("get", "node", NODE, "-o", "json").output)
    assert (shown["apiVersion"], shown["kind"], shown["metadata"]["name"]) == ("v1", "Node", NODE)
    assert shown["status"]["capacity"] == {
        "cpu": "3",
        "memory": f"{8 * GIB // 1024}Ki",
        "pods": "110",
        "ephemeral-storage": f"{GIB // 1024}Ki",
    }
    assert shown["status"]["addresses"] == [
        {"type": "InternalIP", "address": "192.0.2.7"},
        {"type": "Hostname", "address": NODE},
    ]
    assert shown["status"]["nodeInfo"]["machineID"] == "m1"
    by_type = {each["type"]: each["status"] for each in shown["status"]["conditions"]}
    assert by_type == {
        "ProbeKillsHeldBack": "False",
        "MemoryPressure": "Unknown",
        "DiskPressure": "Unknown",
        "PIDPressure": "Unknown",
        "Ready": "True",
    }


def test_the_ready_condition_has_a_reason(written: WrittenNode) -> None:
    assert ready(written) == (
        "Unknown",
        "NodeStatusUnknown",
        "no node agent is running: it stopped posting node status",
    )
    assert written.run("get", "nodes", "--no-headers").output.split()[1] == "NotReady"
    written.store.renew("p1", "{}", 600_000)
    assert ready(written)[:2] == ("False", "KubeletNotReady")
    with_agent(written)
    assert ready(written)[0] == "True"
    failing = pleg.RelistFailing(error="e", last_listed_at=written.now - 400_000, threshold_milliseconds=180_000)
    written.write("pleg/node", failing, pleg.Unhealthy(message="m"))
    message = "PLEG is not healthy: pleg was last seen active 6m40s ago; threshold is 3m0s"
    assert ready(written) == ("False", "KubeletNotReady", message)
    new = with_agent(WrittenNode())
    assert ready(new) == ("False", "KubeletNotReady", "PLEG is not healthy: pleg has yet to be successful")


def test_held_kills_are_a_condition(written: WrittenNode) -> None:
    held = pleg.ProbeKillsHeldBack(at=written.now, pods=3, short_of=("cpu",), kills_per_minute=10)
    with_agent(written).write("pleg/node", held)
    shown = json.loads(written.run("get", "node", NODE, "-o", "json").output)
    (found,) = [each for each in shown["status"]["conditions"] if each["type"] == "ProbeKillsHeldBack"]
    assert (found["status"], found["reason"]) == ("True", "ManyProbesFail")
    assert found["message"] == (
        "probes of several pods failed while the machine is short of cpu: 0 stops are held back, "
        "at most 10 per minute are executed"
    )


def test_the_page_of_a_node_has_the_sections_of_kubectl(written: WrittenNode) -> None:
    page = with_agent(written).run("describe", "node").output
    lines = [line.rstrip() for line in page.splitlines()]
    expected = """\
Name:               node-1
Roles:              <none>
Labels:             disk=ssd
                    kubernetes.io/os=linux
Conditions:
Addresses:
  InternalIP:  192.0.2.7
  Hostname:  node-1
Capacity:
  cpu:                3
Allocatable:
System Info:
  Machine ID:                 m1
  OS Image:                   Debian 12
  Container Runtime Version:  docker://26.1.5
  Kubelet Version:            v0.1.0
Non-terminated Pods:  (2 in total)
  Namespace   Name   CPU Requests   CPU Limits   Memory Requests   Memory Limits   Age
  default     rest   0 (0%)         0 (0%)       0 (0%)            0 (0%)          2m
  default     web    500m (16%)     1 (33%)      2Gi (25%)         0 (0%)          2m
Allocated resources:
  cpu        500m (16%)   1 (33%)
  memory     2Gi (25%)    0 (0%)
Events:
  Normal   NodeReady   2m    chronolet   Node n status is now: NodeReady""".splitlines()
    at = iter(lines)
    for line in expected:
        assert line in at, f"{line!r} is missing or out of order in:\n{page}"
    assert written.run("describe", "node", NODE).output == page
    other = written.run("describe", "node", "other")
    assert (other.status, other.output) == (1, "")
    assert 'nodes "other" not found' in other.errors


def test_a_node_without_a_description_is_unknown() -> None:
    one = WrittenNode()
    page = one.run("describe", "nodes").output
    assert "  OS Image:                   <unknown>\n" in page
    assert one.run("get", "nodes", "--no-headers").output.split()[-1] == "<unknown>"
