"""Lifecycle hooks, which run after the start and before the stop of a container.

Source: pkg/kubelet/lifecycle/handlers.go.
"""

from chronolet_schemas.pod.base import ContainerEvent, HookName, HookOutcome
from chronolet_schemas.podspec import LifecycleHandler
from chronolet_schemas.registry import registered


class HookEvent(ContainerEvent, frozen=True, kw_only=True):
    """Base class for events about a lifecycle hook of the container `id`."""

    id: str
    hook: HookName


@registered
class HookRequested(HookEvent, frozen=True, kw_only=True):
    """Intent: run a hook. An exec is created first and is started only when HookPrepared names it; a sleep needs no
    effect.

    `handler` applies even if the spec changes later. The hook ends at `deadline` at the latest; 0 means no deadline.
    """

    handler: LifecycleHandler
    requested_at: int
    deadline: int = 0


@registered
class HookPrepared(HookEvent, frozen=True, kw_only=True):
    """Intent: the exec `exec_id` was created in the container; start it now, once."""

    exec_id: str


@registered
class HookEnded(HookEvent, frozen=True, kw_only=True):
    """The hook has ended. `message` says why it failed, including its output."""

    outcome: HookOutcome
    message: str = ""
