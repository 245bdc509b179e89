"""What a decision about devices depends on: state, settings, time. Pure.

Input: none. Output: Policy, Context. Next: `claims` and `plugins`, whose functions take a Context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from chronolet.devices.state import Device, State
from chronolet_schemas import kube_events


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the node. `node` is its name, for KubeEvents about it.

    `wait_for_resources`: a claim waits for what a plugin may still provide. If False, the pod is refused instead, as in
    the kubelet.
    """

    node: str = ""
    wait_for_resources: bool = True
    topology: Literal["none", "best-effort"] = "none"


class Context:
    """What one decision depends on: the state, the settings, and the time in milliseconds.

    `state` advances while claims are reconsidered. Plugins do not change during that time, so the healthy devices of
    each resource are computed only once.
    """

    def __init__(self, state: State, policy: Policy, now: int) -> None:
        self.state = state
        self.policy = policy
        self.now = now
        self._healthy: dict[str, Mapping[str, Device]] = {}

    def healthy(self, name: str) -> Mapping[str, Device] | None:
        """Return the healthy devices of a resource, by id; None if no plugin is known."""
        resource = self.state.resources.get(name)
        if resource is None:
            return None
        if name not in self._healthy:
            self._healthy[name] = resource.healthy()
        return self._healthy[name]

    def node_event(self, reason: str, message: str) -> kube_events.Recorded:
        """Return a KubeEvent about the node."""
        return kube_events.Recorded(
            object_kind="Node", name=self.policy.node, severity="Warning", reason=reason, message=message
        )
