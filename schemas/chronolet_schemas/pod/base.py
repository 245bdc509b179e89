"""Whom the events of a pod are about. Next: every other module of this folder."""

from __future__ import annotations

from typing import Literal

from chronolet_schemas.envelope import Event

EndReason = Literal["Deleted", "Replaced"]
"""Why a pod ends: nobody wants it any more, or a newer pod of the name waits."""

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
"""Why a container is stopped: the pod goes, a newer pod of the name waits, its definition changed, its sandbox
died or is to be another one, it is no longer its pod's current attempt, the pod's work is done, the pod has failed, or
its own postStart hook, liveness or startup probe has."""

HookName = Literal["PostStart", "PreStop"]

HookOutcome = Literal["Succeeded", "Failed", "Unfinished", "Unknown"]
"""How a hook ended. `Unfinished`: not before its deadline. `Unknown`: it was begun, and nobody can tell any more."""


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
