"""Starts, ends, restarts and stops of a pod's containers. Source: pkg/kubelet/kuberuntime/kuberuntime_container.go."""

from __future__ import annotations

from chronolet_schemas.pod.base import ContainerEvent, StopReason
from chronolet_schemas.podspec import LifecycleHandler
from chronolet_schemas.registry import registered


@registered
class ContainerBlocked(ContainerEvent, frozen=True, kw_only=True):
    """The container may not start as it is written: `reason` CreateContainerConfigError with the field's path.

    Holds until the pod's spec changes.
    """

    reason: str
    message: str


class CreationEvent(ContainerEvent, frozen=True, kw_only=True):
    """About the creation of a container ahead of its start, which goes on beside whatever else is done with it."""

    def subject(self) -> str:
        return f"create/{self.container}"


@registered
class ContainerCreateRequested(CreationEvent, frozen=True, kw_only=True):
    """Intent: create the container ahead of its start, and do not start it: for the sandbox `sandbox_id`, which is
    still being started, or as the next attempt of a container that is being stopped.

    `image`, if given, is looked for first, after `requested_at` (milliseconds): the container is created only if that
    name still means `image_id`.
    """

    sandbox_id: str
    spec_hash: str
    image_id: str
    image: str = ""
    requested_at: int = 0


@registered
class ContainerCreated(CreationEvent, frozen=True, kw_only=True):
    """The container exists and was never started."""

    id: str


@registered
class ContainerCreateFailed(CreationEvent, frozen=True, kw_only=True):
    """The container was not created ahead of its start, or was removed again because it is not to run any more. A start
    creates it, and reports what stands in the way.
    """

    message: str


@registered
class ContainerStartRequested(ContainerEvent, frozen=True, kw_only=True):
    """Intent: create and start the container in the sandbox `sandbox_id`. `spec_hash` is its definition's.

    `post_start` is its hook, to be run when it runs. A death of this attempt that the runtime dates before
    `requested_at` is about an earlier life of the pod.
    """

    sandbox_id: str
    spec_hash: str
    requested_at: int
    post_start: LifecycleHandler | None = None


@registered
class ContainerStarted(ContainerEvent, frozen=True, kw_only=True):
    """The container runs. `started_at` by the runtime's clock."""

    id: str
    started_at: int


@registered
class ContainerStartFailed(ContainerEvent, frozen=True, kw_only=True):
    """The container could not be created or started.

    `reason` is CreateContainerError, RunContainerError, CreateContainerConfigError or, for a volume that could not be
    had, FailedMount. With an `id` the container was made and counts as having exited with `exit_code` at `failed_at`;
    without one the same attempt is made again at `retry_at`.
    """

    id: str = ""
    reason: str
    message: str
    exit_code: int = 128
    failures: int = 0
    failed_at: int
    retry_at: int = 0


@registered
class ContainerExited(ContainerEvent, frozen=True, kw_only=True):
    """The container is dead. `reason` is Completed, Error, OOMKilled or ContainerStatusUnknown; runtime's times."""

    id: str
    exit_code: int
    reason: str
    message: str = ""
    started_at: int
    finished_at: int


@registered
class ExitRead(ContainerEvent, frozen=True, kw_only=True):
    """What could be learnt of a dead container afterwards: `message`, its last word, empty where it left none.

    `oom_killed`: the kernel killed it for its memory, which was not known when its death was.
    """

    id: str
    message: str = ""
    oom_killed: bool = False


@registered
class RestartScheduled(ContainerEvent, frozen=True, kw_only=True):
    """The container, whose `attempt` ended, is started again at `at`. `back_off_seconds` 0 means at once.

    `next_back_off_seconds` is how long the restart after this one would wait, counted from its exit. `tell_again_at`:
    see BackOffContinued.
    """

    at: int
    back_off_seconds: int
    next_back_off_seconds: int
    tell_again_at: int = 0


@registered
class BackOffContinued(ContainerEvent, frozen=True, kw_only=True):
    """The container waits still (CrashLoopBackOff, ImagePullBackOff), and it is told of once more.

    After that at `tell_again_at`; 0: the wait is over before.
    """

    tell_again_at: int


@registered
class StrayFound(ContainerEvent, frozen=True, kw_only=True):
    """A container runs under the pod's name that is not its current attempt (`uid` may be another one's): it goes."""

    id: str


@registered
class ContainerStopRequested(ContainerEvent, frozen=True, kw_only=True):
    """Intent: stop this attempt: TERM, and KILL at `deadline` (`grace_period_seconds` after the request).

    Held, it gets no signal before ContainerStopReleased: its hook `pre_stop` comes first, or other containers do. The
    grace runs all the time. Asked for once more, only the deadline is another one.
    """

    id: str
    grace_period_seconds: int
    deadline: int
    reason: StopReason
    pre_stop: LifecycleHandler | None = None
    held: bool = False


@registered
class ContainerStopReleased(ContainerEvent, frozen=True, kw_only=True):
    """Intent: a stop that was held goes on: TERM now, KILL at `deadline`, which leaves it two seconds at least."""

    id: str
    deadline: int


@registered
class ContainerProcessEnded(ContainerEvent, frozen=True, kw_only=True):
    """The process of a container that is being stopped with its pod has ended; the sandbox is stopped now. How it ended
    ContainerExited says, when the runtime does.
    """

    id: str


@registered
class ContainerStopFailed(ContainerEvent, frozen=True, kw_only=True):
    """The runtime refused to stop the container; tried again at `retry_at`."""

    id: str
    message: str
    retry_at: int
