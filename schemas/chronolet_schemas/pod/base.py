"""Base classes for the events of a pod. Next: every other module of this folder."""

from typing import Literal

from chronolet_schemas.envelope import Event

EndReason = Literal["Deleted", "Replaced"]
"""Why a pod ends: it is no longer requested, or a newer pod of the same name is waiting."""

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

In this order: the pod is deleted; a newer pod of the same name is waiting; the container's definition changed; its
sandbox died or is to be replaced; it is no longer the current attempt; the pod's work is done; the pod failed; the
container's postStart hook, liveness probe or startup probe failed.
"""

HookName = Literal["PostStart", "PreStop"]

HookOutcome = Literal["Succeeded", "Failed", "Unfinished", "Unknown"]
"""How a hook ended. `Unfinished`: it had not ended by its deadline. `Unknown`: it was started, but its result cannot be
determined.
"""


class PodEvent(Event, frozen=True, kw_only=True):
    """Base class for events about a pod."""

    pod: str
    uid: str


class ContainerEvent(PodEvent, frozen=True, kw_only=True):
    """Base class for events about one container of a pod; `attempt` counts the container's starts from 0."""

    container: str
    attempt: int

    def subject(self) -> str:
        return f"container/{self.container}"


class SandboxEvent(PodEvent, frozen=True, kw_only=True):
    """Base class for events about a pod's sandbox; `attempt` counts sandboxes from 0."""

    attempt: int

    def subject(self) -> str:
        return "sandbox"
