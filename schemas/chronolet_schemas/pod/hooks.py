"""What runs after a container's start and before its stop. Source: pkg/kubelet/lifecycle/handlers.go."""

from __future__ import annotations

from chronolet_schemas.pod.base import ContainerEvent, HookName, HookOutcome
from chronolet_schemas.podspec import LifecycleHandler
from chronolet_schemas.registry import registered


class HookEvent(ContainerEvent, frozen=True, kw_only=True):
    """About a lifecycle hook of the container `id`."""

    id: str
    hook: HookName


@registered
class HookRequested(HookEvent, frozen=True, kw_only=True):
    """Intent: run a hook. An exec is made first and begun only when HookPrepared names it; a sleep needs no effect.

    `handler` is what was asked for then, whatever the spec says later. At `deadline` it is given up; 0: never.
    """

    handler: LifecycleHandler
    requested_at: int
    deadline: int = 0


@registered
class HookPrepared(HookEvent, frozen=True, kw_only=True):
    """Intent: the exec `exec_id` was made in the container and is begun now, once."""

    exec_id: str


@registered
class HookEnded(HookEvent, frozen=True, kw_only=True):
    """The hook is over. `message` says why it failed, output included."""

    outcome: HookOutcome
    message: str = ""
