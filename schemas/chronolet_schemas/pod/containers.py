"""Starts, exits, restarts and stops of a pod's containers. Source: pkg/kubelet/kuberuntime/kuberuntime_container.go."""

from chronolet_schemas.pod.base import ContainerEvent, StopReason
from chronolet_schemas.podspec import LifecycleHandler
from chronolet_schemas.registry import registered


@registered
class ContainerBlocked(ContainerEvent, frozen=True, kw_only=True):
    """The container cannot be started as specified: `reason` is CreateContainerConfigError, `message` names the field.

    Holds until the pod's spec changes.
    """

    reason: str
    message: str


class CreationEvent(ContainerEvent, frozen=True, kw_only=True):
    """Base class for events about the creation of a container ahead of its start.

    The creation is concurrent with everything else that is done to the container.
    """

    def subject(self) -> str:
        return f"create/{self.container}"


@registered
class ContainerCreateRequested(CreationEvent, frozen=True, kw_only=True):
    """Intent: create the container ahead of its start, without starting it.

    The container is either for the sandbox `sandbox_id`, which is still being started, or the next attempt of a
    container that is being stopped. If `image` is set, it is resolved first, after `requested_at` (milliseconds): the
    container is created only if that name still refers to `image_id`.
    """

    sandbox_id: str
    spec_hash: str
    image_id: str
    image: str = ""
    requested_at: int = 0


@registered
class ContainerCreated(CreationEvent, frozen=True, kw_only=True):
    """The container exists and has not been started."""

    id: str


@registered
class ContainerCreateFailed(CreationEvent, frozen=True, kw_only=True):
    """The container was not created ahead of its start, or was removed again because it must not run.

    The start then creates the container and reports any error.
    """

    message: str


@registered
class ContainerStartRequested(ContainerEvent, frozen=True, kw_only=True):
    """Intent: create and start the container in the sandbox `sandbox_id`. `spec_hash` is the hash of its definition.

    `post_start` is the hook to run after the container has started. If the runtime dates a death of this attempt before
    `requested_at`, it belongs to an earlier life of the pod.
    """

    sandbox_id: str
    spec_hash: str
    requested_at: int
    post_start: LifecycleHandler | None = None


@registered
class ContainerStarted(ContainerEvent, frozen=True, kw_only=True):
    """The container is running. `started_at` is taken from the runtime's clock."""

    id: str
    started_at: int


@registered
class ContainerStartFailed(ContainerEvent, frozen=True, kw_only=True):
    """The container could not be created or started.

    `reason` is CreateContainerError, RunContainerError, CreateContainerConfigError or, for an unavailable volume,
    FailedMount. If `id` is set, the container was created and counts as exited with `exit_code` at `failed_at`;
    otherwise the same attempt is retried at `retry_at`.
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
    """The container is dead. `reason` is Completed, Error, OOMKilled or ContainerStatusUnknown. Times are taken from
    the runtime's clock.
    """

    id: str
    exit_code: int
    reason: str
    message: str = ""
    started_at: int
    finished_at: int


@registered
class ExitRead(ContainerEvent, frozen=True, kw_only=True):
    """Details of a dead container that were read after its death. `message` is its termination message, empty if it
    left none.

    `oom_killed`: the kernel killed it for lack of memory, which was not known when its death was recorded.
    """

    id: str
    message: str = ""
    oom_killed: bool = False


@registered
class RestartScheduled(ContainerEvent, frozen=True, kw_only=True):
    """The container, whose `attempt` has ended, is restarted at `at`. `back_off_seconds` 0 means immediately.

    `next_back_off_seconds` is the back-off for the restart after this one, counted from the container's exit.
    `tell_again_at`: see BackOffContinued.
    """

    at: int
    back_off_seconds: int
    next_back_off_seconds: int
    tell_again_at: int = 0


@registered
class BackOffContinued(ContainerEvent, frozen=True, kw_only=True):
    """The container is still in back-off (CrashLoopBackOff, ImagePullBackOff), which is reported again.

    The next report is at `tell_again_at`; 0 means that there is none because the back-off ends first.
    """

    tell_again_at: int


@registered
class StrayFound(ContainerEvent, frozen=True, kw_only=True):
    """A running container of a pod with this name is not the container's current attempt (its `uid` may differ): it is
    removed.
    """

    id: str


@registered
class ContainerStopRequested(ContainerEvent, frozen=True, kw_only=True):
    """Intent: stop this attempt: send the container's stop signal, and KILL at `deadline` (`grace_period_seconds` after
    the request).

    `held`: send no signal before ContainerStopReleased, because the `pre_stop` hook or other containers come first. The
    grace period is already running. A repeated request only changes the deadline.
    """

    id: str
    grace_period_seconds: int
    deadline: int
    reason: StopReason
    pre_stop: LifecycleHandler | None = None
    held: bool = False


@registered
class ContainerStopReleased(ContainerEvent, frozen=True, kw_only=True):
    """Intent: continue a held stop: send the container's stop signal now, and KILL at `deadline`, at least two seconds
    later.
    """

    id: str
    deadline: int


@registered
class ContainerProcessEnded(ContainerEvent, frozen=True, kw_only=True):
    """The process of a container that is stopped with its pod has exited; the sandbox is stopped now.

    ContainerExited reports how the process exited, once the runtime reports it.
    """

    id: str


@registered
class ContainerStopFailed(ContainerEvent, frozen=True, kw_only=True):
    """The runtime refused to stop the container; the stop is retried at `retry_at`."""

    id: str
    message: str
    retry_at: int
