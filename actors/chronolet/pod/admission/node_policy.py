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
    """The node's `name` and `labels`, the treatment of pods that do not match them, and the kernel parameters that are
    allowed in addition to the safe ones. Without labels, every selector matches.
    """

    name: str = ""
    labels: Mapping[str, str] = {}
    node_affinity: NodeAffinity = "warn"
    allowed_unsafe_sysctls: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """Why a pod is rejected or warned about."""

    reason: str
    message: str


def policy_of(node: Node) -> Policy:
    """The policy of a described node."""
    return Policy(
        name=node.name,
        labels=node.labels,
        node_affinity=node.node_affinity,
        allowed_unsafe_sysctls=node.allowed_unsafe_sysctls,
    )


def rejection(policy: Policy, manifest: Pod) -> Verdict | None:
    """Why the node rejects the pod; None if it does not."""
    if forbidden := forbidden_sysctl(manifest, policy.allowed_unsafe_sysctls):
        return Verdict(SYSCTL_FORBIDDEN, forbidden)
    if policy.node_affinity == "enforce" and _mismatch(policy, manifest):
        return Verdict(NODE_AFFINITY, f"Predicate {NODE_AFFINITY} failed")
    return None


def warning(policy: Policy, manifest: Pod) -> Verdict | None:
    """Why a kubelet would reject the pod although this node admits it; None if it would not."""
    found = _mismatch(policy, manifest) if policy.node_affinity == "warn" else ""
    return Verdict(NODE_AFFINITY, f"{found}; the pod runs anyway, see --node-affinity") if found else None


def _mismatch(policy: Policy, manifest: Pod) -> str:
    return mismatch(manifest.spec, policy.labels, policy.name) if policy.labels else ""
