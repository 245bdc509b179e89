"""Results and progress of a pod's effects. Each signal repeats its effect's subject and intent; the decider ignores a
signal whose intent is no longer outstanding.

Input: none. Output: the Signal Structs that `effects` sends. Next: `decider`. Times are milliseconds of the runtime's
clock, 0 if unknown; messages are one line in the runtime's wording.
"""

from __future__ import annotations

from typing import Literal

from chronolet_schemas.envelope import Signal


class EffectResult(Signal, frozen=True, kw_only=True):
    """Base class of all results and progress reports."""

    subject: str
    intent: str


class SpecKept(EffectResult, frozen=True, kw_only=True):
    """The changed spec has been stored on disk."""


class SandboxMade(EffectResult, frozen=True, kw_only=True):
    """Progress of StartSandbox: the sandbox exists and will be started next."""

    id: str


class SandboxUp(EffectResult, frozen=True, kw_only=True):
    """The sandbox is running. `ip` is empty if the runtime reports none; `host_ip` is the node's own address."""

    id: str
    ip: str = ""
    host_ip: str = ""
    started_at: int


class SandboxDown(EffectResult, frozen=True, kw_only=True):
    """The sandbox is dead. As the result of StartSandbox, it means that an earlier start had succeeded and the sandbox
    has died since.
    """

    id: str
    exit_code: int = 0
    started_at: int = 0
    finished_at: int = 0


class SandboxRefused(EffectResult, frozen=True, kw_only=True):
    """The sandbox could not be started. What was created has been removed, if the runtime allowed it."""

    message: str


class PullBegan(EffectResult, frozen=True, kw_only=True):
    """Progress of EnsureImage: a pull begins or joins the queue, because the image is missing or the policy is Always.

    `lost`: the names of pull Secrets that cannot be read.
    """

    lost: tuple[str, ...] = ()


class PullProgress(EffectResult, frozen=True, kw_only=True):
    """Progress of EnsureImage: bytes pulled, and the total of the layers known so far."""

    done_bytes: int
    total_bytes: int


class ImagePresent(EffectResult, frozen=True, kw_only=True):
    """The image is present. `digest` is its name in its registry (`host/path@sha256:...`), empty if it has none.

    If it was `pulled`, the pull took `milliseconds`, after `waited_milliseconds` in the queue.
    """

    image_id: str
    digest: str = ""
    pulled: bool
    milliseconds: int = 0
    waited_milliseconds: int = 0
    size_bytes: int = 0


class ImageRefused(EffectResult, frozen=True, kw_only=True):
    """The image is not available."""

    reason: Literal["ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable"]
    message: str


class ContainerMade(EffectResult, frozen=True, kw_only=True):
    """The container exists and has never been started."""

    id: str


class ContainerUp(EffectResult, frozen=True, kw_only=True):
    """The container is running."""

    id: str
    started_at: int


class ProcessEnded(EffectResult, frozen=True, kw_only=True):
    """Progress of StopContainer: the process has ended. The runtime reports how it ended once it has cleaned up."""

    id: str


class ContainerDead(EffectResult, frozen=True, kw_only=True):
    """The container ran and is dead. `reason`: Completed, Error, OOMKilled or ContainerStatusUnknown."""

    id: str
    exit_code: int
    reason: str
    message: str = ""
    started_at: int = 0
    finished_at: int = 0


class ContainerRefused(EffectResult, frozen=True, kw_only=True):
    """The container could not be created (empty `id`) or could not be started (`id` is set; `exit_code` is the
    runtime's, else 128). `id` is also empty if the runtime did not answer, so that the container may be running, and if
    nothing of the attempt has run.

    `reason` FailedMount: a volume of the pod is not available, so no creation was attempted.
    """

    reason: Literal["CreateContainerError", "RunContainerError", "CreateContainerConfigError", "FailedMount"]
    message: str
    id: str = ""
    exit_code: int = 128


class StopRefused(EffectResult, frozen=True, kw_only=True):
    """The runtime refused the stop; the container or sandbox may still be running."""

    message: str


class HookPrepared(EffectResult, frozen=True, kw_only=True):
    """The hook's exec has been created but not started."""

    exec_id: str


class HookRefused(EffectResult, frozen=True, kw_only=True):
    """The hook's exec could not be created."""

    message: str


class HookDone(EffectResult, frozen=True, kw_only=True):
    """The hook ended. `failed`: whether its command exited with a code other than 0, or its request got no response;
    `message` then contains the kubelet's text, including the output.
    """

    failed: bool = False
    message: str = ""


class HookUnfinished(EffectResult, frozen=True, kw_only=True):
    """The hook did not end by its deadline; it may still be running."""


class HookOutcomeUnknown(EffectResult, frozen=True, kw_only=True):
    """The exec was started, or may have been, and the runtime no longer knows it."""

    message: str


class ExitRead(EffectResult, frozen=True, kw_only=True):
    """A dead container's termination message, which may be empty, and whether the container was OOM-killed."""

    message: str = ""
    oom_killed: bool = False


class CleanedUp(EffectResult, frozen=True, kw_only=True):
    """Nothing with the pod's uid remains."""


class CleanupRefused(EffectResult, frozen=True, kw_only=True):
    """The clean-up is incomplete."""

    message: str
