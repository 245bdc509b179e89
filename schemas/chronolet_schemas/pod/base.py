"""Base classes of the events of a pod. Next: every other module of this folder."""

from typing import Literal

from chronolet_schemas.envelope import Event

EndReason = Literal["Deleted", "Replaced"]
"""Why a pod ends: it is no longer requested, or a newer pod of the same name waits."""

StopReason = Literal[
    "Deleted",
    "Replaced",
    "SpecChanged",
    "SandboxGone",
    "Superseded",
    "PodCompleted",
    "PodFailed",
    "FailedPostStartHook",
    "LivenessFailed",
    "StartupFailed",
]
"""Why a container is stopped.

In this order: the pod is deleted; a newer pod of the same name waits; its definition changed; its sandbox died or is to
be replaced; it is no longer the current attempt; the pod's work is done; the pod failed; its postStart hook, liveness
probe or startup probe failed.
"""

HookName = Literal["PostStart", "PreStop"]

HookOutcome = Literal["Succeeded", "Failed", "Unfinished", "Unknown"]
"""How a hook ended. `Unfinished`: not before its deadline. `Unknown`: it was started, and its result cannot be
determined.
"""


class PodEvent(Event, frozen=True, kw_only=True):
    """About a pod."""

    pod: str
    uid: str


class ContainerEvent(PodEvent, frozen=True, kw_only=True):
    """About one container of a pod; `attempt` counts its starts from 0."""

    container: str
    attempt: int

    def subject(self) -> str:
        return f"container/{self.container}"


class SandboxEvent(PodEvent, frozen=True, kw_only=True):
    """About a pod's sandbox; `attempt` counts sandboxes from 0."""

    attempt: int

    def subject(self) -> str:
        return "sandbox"
