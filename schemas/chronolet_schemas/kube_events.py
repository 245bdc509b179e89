"""KubeEvents: the Kubernetes API object (type, reason, message) that people and their tools read.

Any decider emits `Recorded` in its own step, so that the event and the change it tells of are one commit.
Reasons and texts are the kubelet's (pkg/kubelet/events/event.go).
"""

from __future__ import annotations

from typing import Literal

from chronolet_schemas.envelope import Event
from chronolet_schemas.registry import registered


@registered
class Recorded(Event, frozen=True, kw_only=True):
    """Something to tell about an object. The entry's entity is the entity that told it."""

    object_kind: Literal["Pod", "Node"]
    namespace: str = ""
    name: str
    uid: str = ""
    field_path: str = ""
    """`spec.containers{app}` where it is about one container."""
    severity: Literal["Normal", "Warning"]
    """The KubeEvent's `type`; `type` alone would read as the entry's own."""
    reason: str
    message: str

    def subject(self) -> str:
        return f"event/{self.reason}"
