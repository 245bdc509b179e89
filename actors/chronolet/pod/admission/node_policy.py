"""What the node itself says of a pod before anything is asked for it: kernel parameters, labels. Pure.

Comes in: a manifest, the node's policy. Goes out: the kubelet's rejection, or a warning. Next: `decider` looks here
before a pod's sandbox, `apply` before the pod is sent. Source: pkg/kubelet/sysctl/allowlist.go,
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
    """The node's `name` and `labels`, and what becomes of a pod that they do not match; which kernel parameters are
    allowed beside the safe ones. Without labels every selector is taken for one that matches.
    """

    name: str = ""
    labels: Mapping[str, str] = {}
    node_affinity: NodeAffinity = "warn"
    allowed_unsafe_sysctls: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """A reason, and a message about it."""

    reason: str
    message: str


def policy_of(node: Node) -> Policy:
    """As a node that was described has it."""
    return Policy(
        name=node.name,
        labels=node.labels,
        node_affinity=node.node_affinity,
        allowed_unsafe_sysctls=node.allowed_unsafe_sysctls,
    )


def rejection(policy: Policy, manifest: Pod) -> Verdict | None:
    """Why the pod is not let in; None if nothing here stands against it."""
    if forbidden := forbidden_sysctl(manifest, policy.allowed_unsafe_sysctls):
        return Verdict(SYSCTL_FORBIDDEN, forbidden)
    if policy.node_affinity == "enforce" and _mismatch(policy, manifest):
        return Verdict(NODE_AFFINITY, f"Predicate {NODE_AFFINITY} failed")
    return None


def warning(policy: Policy, manifest: Pod) -> Verdict | None:
    """What a kubelet would have rejected the pod for, where the node lets it in."""
    found = _mismatch(policy, manifest) if policy.node_affinity == "warn" else ""
    return Verdict(NODE_AFFINITY, f"{found}; the pod runs here all the same, see --node-affinity") if found else None


def _mismatch(policy: Policy, manifest: Pod) -> str:
    return mismatch(manifest.spec, policy.labels, policy.name) if policy.labels else ""
