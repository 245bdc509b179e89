"""`apply` predicts whether the node will admit a pod: kernel parameters, host ports, node labels."""

from __future__ import annotations

import json
from typing import Any

from chronolet_schemas import podspec, qos
from chronolet_schemas.podspec import Container, ContainerPort, ObjectMeta, Pod, PodSpec
from chronolet_schemas.resources import HostPort
from tests.cli.support.written_node import WrittenNode
from tests.deciders.qos.nodes import need, node

HTTP = HostPort(port=80)


def written(**of_node: Any) -> WrittenNode:
    """Return a node on which default/web holds port 80 on every address."""
    one = WrittenNode()
    one.write("qos/node", qos.NodeDescribed(node=node(name="node-1", labels={"disk": "hdd"}, **of_node)))
    one.write("qos/node", qos.PodAdmitted(pod="default/web", uid="u1", needs=need(host_ports=(HTTP,))))
    return one


def manifest(name: str, *, port: int = 0, **spec: Any) -> Pod:
    ports = (ContainerPort(container_port=80, host_port=port),) if port else ()
    containers = (Container(name="app", image="busybox:1", ports=ports),)
    return podspec.defaulted(Pod(metadata=ObjectMeta(name=name), spec=PodSpec(containers=containers, **spec)))


def dry_run(one: WrittenNode, *pods: Pod, flags: tuple[str, ...] = ()) -> Any:
    text = "\n---\n".join(json.dumps(podspec.to_plain(each)) for each in pods)
    return one.run("apply", "--dry-run", "-f", "-", *flags, stdin=text.encode())


def test_a_port_conflict_is_a_warning_that_names_the_holder() -> None:
    result = dry_run(written(), manifest("b", port=80), manifest("c", port=81), manifest("d", port=81))
    assert result.status == 0
    waits = "it waits until that pod is gone (WaitingForHostPorts)"
    assert result.errors.splitlines() == [
        f"warning: pod default/b: host port 0.0.0.0:80/TCP is held by pod default/web: {waits}",
        f"warning: pod default/d: host port 0.0.0.0:81/TCP is held by pod default/c: {waits}",
    ]
    # A pod does not conflict with itself.
    assert dry_run(written(), manifest("web", port=80)).errors == ""


def test_a_predicted_rejection_fails_a_dry_run_unless_allowed() -> None:
    one = written(wait_for_host_ports=False, node_affinity="enforce", allowed_unsafe_sysctls=("kernel.msg*",))
    pods = [manifest("b", port=80), manifest("c", node_selector={"disk": "ssd"})]
    result = dry_run(one, *pods)
    assert result.status == 1
    assert result.errors.splitlines() == [
        "warning: pod default/b: host port 0.0.0.0:80/TCP is held by pod default/web: it will be rejected (NodePorts)",
        "warning: pod default/c: it will be rejected: NodeAffinity: Predicate NodeAffinity failed",
        "error: pod default/b would be rejected (dry run; --allow-unrunnable accepts it)",
        "error: pod default/c would be rejected (dry run; --allow-unrunnable accepts it)",
    ]
    assert dry_run(one, *pods, flags=("--allow-unrunnable",)).status == 0
    strict = dry_run(one, *pods, flags=("--strict",))
    assert (strict.status, strict.output) == (1, "")
    assert strict.errors.splitlines()[1] == (
        "error: pod default/c: it will be rejected: NodeAffinity: Predicate NodeAffinity failed"
    )


def test_a_label_mismatch_is_a_warning_and_a_forbidden_kernel_parameter_a_rejection() -> None:
    result = dry_run(written(), manifest("c", node_selector={"disk": "ssd"}))
    assert result.status == 0
    assert result.errors == (
        "warning: pod default/c: spec.nodeSelector: the node does not have the label disk=ssd; "
        "the pod runs anyway, see --node-affinity\n"
    )
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: s}\nspec:\n"
        "  securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}\n"
        "  containers: [{name: a, image: 'b:1'}]\n"
    )
    result = written().run("apply", "--dry-run", "-f", "-", stdin=text.encode())
    assert result.status == 1
    assert result.errors.splitlines()[0] == (
        "warning: pod default/s: it will be rejected: SysctlForbidden: "
        'forbidden sysctl: "kernel.msgmax" not allowlisted'
    )
    allowed = written(allowed_unsafe_sysctls=("kernel.msg*",))
    assert allowed.run("apply", "--dry-run", "-f", "-", stdin=text.encode()).status == 0


def test_a_pod_that_waits_for_admission_holds_no_port() -> None:
    one = written()
    needs = need(host_ports=(HostPort(port=81),))
    one.write(
        "qos/node",
        qos.HostPortsAwaited(pod="default/x", uid="u2", needs=needs, holder="default/y", message="m", asked_at=1),
    )
    assert dry_run(one, manifest("b", port=81)).errors == ""
    released = qos.PodReleased(pod="default/web", uid="u1")
    one.write("qos/node", released)
    assert dry_run(one, manifest("b", port=80)).errors == ""
