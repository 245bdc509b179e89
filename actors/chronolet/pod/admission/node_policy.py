"""The node's own checks of a pod before admission: kernel parameters, labels. Pure.

Input: a manifest, the node's policy. Output: the kubelet's rejection, or a warning. Next: `decider` checks before a
pod's sandbox starts, `apply` before it sends the pod. Source: pkg/kubelet/sysctl/allowlist.go,
pkg/kubelet/lifecycle/predicate.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from chronolet.rules.node_affinity import mismatch
from chronolet.rules.security import forbidden_sysctl
from chronolet_schemas.podspec import Pod
from chronolet_schemas.qos import Node, NodeAffinity

SYSCTL_FORBIDDEN: Literal["SysctlForbidden"] = "SysctlForbidden"
NODE_AFFINITY: Literal["NodeAffinity"] = "NodeAffinity"


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The policy of the node `name` with `labels`. Without labels, every selector matches.

    `node_affinity`: the treatment of pods that do not match the labels. `allowed_unsafe_sysctls`: kernel parameters
    that are allowed in addition to the safe ones.
    """

    name: str = ""
    labels: Mapping[str, str] = {}
    node_affinity: NodeAffinity = "warn"
    allowed_unsafe_sysctls: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """The reason and the message of a rejection or a warning."""

    reason: str
    message: str


def policy_of(node: Node) -> Policy:
    """Return the policy of the node that `node` describes."""
    return Policy(
        name=node.name,
        labels=node.labels,
        node_affinity=node.node_affinity,
        allowed_unsafe_sysctls=node.allowed_unsafe_sysctls,
    )


def rejection(policy: Policy, manifest: Pod) -> Verdict | None:
    """Return why the node rejects the pod; None if it does not."""
    if forbidden := forbidden_sysctl(manifest, policy.allowed_unsafe_sysctls):
        return Verdict(SYSCTL_FORBIDDEN, forbidden)
    if policy.node_affinity == "enforce" and _mismatch(policy, manifest):
        return Verdict(NODE_AFFINITY, f"Predicate {NODE_AFFINITY} failed")
    return None


def warning(policy: Policy, manifest: Pod) -> Verdict | None:
    """Return the warning about a pod that a kubelet would reject because of the node's labels; None if it would not, or
    if `node_affinity` is not `warn`.
    """
    found = _mismatch(policy, manifest) if policy.node_affinity == "warn" else ""
    return Verdict(NODE_AFFINITY, f"{found}; the pod runs anyway, see --node-affinity") if found else None


def _mismatch(policy: Policy, manifest: Pod) -> str:
    return mismatch(manifest.spec, policy.labels, policy.name) if policy.labels else ""
