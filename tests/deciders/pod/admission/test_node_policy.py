"""The node's checks before a pod starts: kernel parameters, labels, host ports."""

from __future__ import annotations

from typing import Any

from chronolet.pod import signals
from chronolet.pod.admission.node_policy import Policy, policy_of
from chronolet.pod.decider import decider
from chronolet.pod.status.status import plain_status, pod_status
from chronolet_schemas import kube_events, pod, qos
from chronolet_schemas.podspec import PodSecurityContext
from chronolet_schemas.podspec.security import Sysctl
from tests.deciders.pod.admission.test_node_share import Shared
from tests.deciders.pod.life import POD, Life, container, manifest
from tests.deciders.qos.nodes import node

SELECTS: dict[str, Any] = {"node_selector": {"disk": "ssd"}}
UNSAFE: dict[str, Any] = {"security_context": PodSecurityContext(sysctls=(Sysctl(name="kernel.msgmax", value="1"),))}


def of(policy: Policy, *kinds: str) -> Life:
    life = Life()
    life.decider = decider(frozenset(kinds), policy)
    return life


def test_a_forbidden_kernel_parameter_rejects_the_pod_before_its_sandbox() -> None:
    life = of(Policy()).apply(manifest(**UNSAFE))
    assert life.kinds == ["SpecAccepted", "PodFailed"]
    text = 'forbidden sysctl: "kernel.msgmax" not allowlisted'
    life.then_kube_events(("SysctlForbidden", text))
    status = pod_status(life.state)
    assert (status.phase, status.reason, status.message) == (
        "Failed",
        "SysctlForbidden",
        f"Pod was rejected: {text}",
    )
    assert life.effects == {}
    assert of(Policy(allowed_unsafe_sysctls=("kernel.msg*",))).apply(manifest(**UNSAFE)).kinds[-1] == (
        "SandboxStartRequested"
    )
    # No request is sent to other kinds either.
    assert of(Policy(), "qos").apply(manifest(**UNSAFE)).kinds == ["SpecAccepted", "AdmissionBegan", "PodFailed"]


def test_a_changed_spec_is_checked_before_the_next_sandbox() -> None:
    life = of(Policy()).apply(manifest()).sandbox_up().start().apply(manifest(**UNSAFE))
    life.stopped("container/app", 137).answer("sandbox", signals.SandboxDown, id="sandbox-0")
    assert life.only(pod.PodFailed).reason == "SysctlForbidden"


def test_labels_that_do_not_match_reject_the_pod_if_enforced() -> None:
    policy = Policy(name="n", labels={"disk": "hdd"}, node_affinity="enforce")
    life = of(policy).apply(manifest(**SELECTS))
    failed = life.only(pod.PodFailed)
    assert (failed.reason, failed.message) == ("NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed")
    fits = Policy(name="n", labels={"disk": "ssd"}, node_affinity="enforce")
    assert of(fits).apply(manifest(**SELECTS)).kinds == ["SpecAccepted", "SandboxStartRequested"]


def test_unmatched_labels_are_reported_once_unless_enforced() -> None:
    life = of(Policy(name="n", labels={"disk": "hdd"})).apply(manifest(**SELECTS))
    assert life.kinds == ["SpecAccepted", "SandboxStartRequested"]
    text = "spec.nodeSelector: the node does not have the label disk=ssd; the pod runs anyway, see"
    (event,) = [one for one in life.recorded if isinstance(one, kube_events.Recorded)]
    assert (event.severity, event.reason, event.message) == ("Warning", "NodeAffinity", f"{text} --node-affinity")
    life.answer("sandbox", signals.SandboxRefused, message="no").wake()
    assert "NodeAffinity" not in [one.reason for one in life.recorded]
    assert of(Policy(name="n", labels={"disk": "ssd"})).apply(manifest(**SELECTS)).recorded == ()
    assert of(Policy()).apply(manifest(**SELECTS)).recorded == ()


def test_the_policy_follows_from_the_nodes_description() -> None:
    described = node(name="n", labels={"a": "b"}, node_affinity="enforce", allowed_unsafe_sysctls=("net.*",))
    assert policy_of(described) == Policy(
        name="n", labels={"a": "b"}, node_affinity="enforce", allowed_unsafe_sysctls=("net.*",)
    )


MESSAGE = "host port 0.0.0.0:80/TCP is held by pod default/other"


def awaited(message: str = MESSAGE) -> qos.HostPortsAwaited:
    needs = Shared().apply(manifest()).only(pod.CgroupRequested).needs
    return qos.HostPortsAwaited(pod=POD, uid="u1", needs=needs, holder="default/other", message=message, asked_at=1)


def test_a_pod_waits_for_a_host_port_and_names_its_holder() -> None:
    life = Shared().apply(manifest(container("app"), container("side"))).when(awaited())
    assert life.facts == (pod.HostPortsAwaited(pod=POD, uid="u1", holder="default/other", message=MESSAGE),)
    life.then_kube_events(("WaitingForHostPorts", MESSAGE))
    assert (life.effects, life.due) == ({}, None)
    status = plain_status(life.state)
    assert status["phase"] == "Pending"
    waiting = [one["state"]["waiting"] for one in status["containerStatuses"]]
    assert waiting == [{"reason": "WaitingForHostPorts", "message": MESSAGE}] * 2
    life.when(awaited()).then()
    assert life.when(awaited("host port 0.0.0.0:80/TCP is held by pod a/b")).kinds == ["HostPortsAwaited"]
    assert life.grants().kinds == ["CgroupGranted", "SandboxStartRequested"]


def test_a_pod_that_waits_for_a_port_may_be_removed_or_rejected() -> None:
    life = Shared().apply(manifest()).when(awaited()).withdraw()
    assert life.kinds == ["TerminationRequested", "CgroupReleased", "CleanupRequested"]
    life.when(awaited("x")).then()
    rejected = Shared().apply(manifest()).when(awaited())
    rejected.when(qos.PodRefused(pod=POD, uid="u1", reason="NodePorts", message="Predicate NodePorts failed"))
    status = pod_status(rejected.state)
    assert (status.reason, status.message) == ("NodePorts", "Pod was rejected: Predicate NodePorts failed")
