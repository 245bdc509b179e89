"""What `apply` says in advance of admission: kernel parameters, ports of the node, labels."""

from __future__ import annotations

import json
from typing import Any

from chronolet_schemas import podspec, qos
from chronolet_schemas.podspec import Container, ContainerPort, ObjectMeta, Pod, PodSpec
from chronolet_schemas.resources import HostPort
from tests.cli.written import WrittenNode
from tests.deciders.qos.nodes import need, node

HTTP = HostPort(port=80)


def written(**of_node: Any) -> WrittenNode:
    """A node on which default/web has port 80 of every address."""
    one = WrittenNode()
    one.write("qos/node", qos.NodeDescribed(node=node(name="node-1", labels={"disk": "hdd"}, **of_node)))
    one.write("qos/node", qos.PodAdmitted(pod="default/web", uid="u1", needs=need(host_ports=(HTTP,))))
    return one


def manifest(name: str, *, port: int = 0, **spec: Any) -> Pod:
    ports = (ContainerPort(container_port=80, host_port=port),) if port else ()
    containers = (Container(name="app", image="busybox:1", ports=ports),)
    return podspec.defaulted(Pod(metadata=ObjectMeta(name=name), spec=PodSpec(containers=containers, **spec)))


def tried(one: WrittenNode, *pods: Pod, flags: tuple[str, ...] = ()) -> Any:
    text = "\n---\n".join(json.dumps(podspec.to_plain(each)) for each in pods)
    return one.run("apply", "--dry-run", "-f", "-", *flags, stdin=text.encode())


def test_a_held_port_is_told_with_its_holder() -> None:
    said = tried(written(), manifest("b", port=80), manifest("c", port=81), manifest("d", port=81))
    assert said.status == 0
    waits = "it waits until that pod is gone (WaitingForHostPorts)"
    assert said.err.splitlines() == [
        f"warning: pod default/b: host port 0.0.0.0:80/TCP is held by pod default/web: {waits}",
        f"warning: pod default/d: host port 0.0.0.0:81/TCP is held by pod default/c: {waits}",
    ]
    # A pod does not stand in its own way.
    assert tried(written(), manifest("web", port=80)).err == ""


def test_what_will_be_rejected_fails_a_dry_run_unless_that_is_asked_for() -> None:
    one = written(wait_for_host_ports=False, node_affinity="enforce", allowed_unsafe_sysctls=("kernel.msg*",))
    pods = [manifest("b", port=80), manifest("c", node_selector={"disk": "ssd"})]
    said = tried(one, *pods)
    assert said.status == 1
    assert said.err.splitlines() == [
        "warning: pod default/b: host port 0.0.0.0:80/TCP is held by pod default/web: it will be rejected (NodePorts)",
        "warning: pod default/c: it will be rejected: NodeAffinity: Predicate NodeAffinity failed",
        "error: pod default/b would be rejected (dry run; --allow-unrunnable accepts it)",
        "error: pod default/c would be rejected (dry run; --allow-unrunnable accepts it)",
    ]
    assert tried(one, *pods, flags=("--allow-unrunnable",)).status == 0
    strict = tried(one, *pods, flags=("--strict",))
    assert (strict.status, strict.out) == (1, "")
    assert strict.err.splitlines()[1] == (
        "error: pod default/c: it will be rejected: NodeAffinity: Predicate NodeAffinity failed"
    )


def test_labels_that_do_not_match_and_forbidden_kernel_parameters() -> None:
    said = tried(written(), manifest("c", node_selector={"disk": "ssd"}))
    assert said.status == 0
    assert said.err == (
        "warning: pod default/c: spec.nodeSelector: the node does not have the label disk=ssd; "
        "the pod runs anyway, see --node-affinity\n"
    )
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: s}\nspec:\n"
        "  securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}\n"
        "  containers: [{name: a, image: 'b:1'}]\n"
    )
    said = written().run("apply", "--dry-run", "-f", "-", stdin=text.encode())
    assert said.status == 1
    assert said.err.splitlines()[0] == (
        "warning: pod default/s: it will be rejected: SysctlForbidden: "
        'forbidden sysctl: "kernel.msgmax" not allowlisted'
    )
    allowed = written(allowed_unsafe_sysctls=("kernel.msg*",))
    assert allowed.run("apply", "--dry-run", "-f", "-", stdin=text.encode()).status == 0


def test_a_waiting_pod_holds_no_port() -> None:
    one = written()
    needs = need(host_ports=(HostPort(port=81),))
    one.write(
        "qos/node",
        qos.HostPortsAwaited(pod="default/x", uid="u2", needs=needs, holder="default/y", message="m", asked_at=1),
    )
    assert tried(one, manifest("b", port=81)).err == ""
    released = qos.PodReleased(pod="default/web", uid="u1")
    one.write("qos/node", released)
    assert tried(one, manifest("b", port=80)).err == ""
