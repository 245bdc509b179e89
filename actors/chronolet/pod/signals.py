"""What a pod's effects tell it. Each answer repeats its effect's subject and intent; one whose intent is no longer open
is passed over.

Comes in: nothing. Goes out: the Signal Structs that `effects` sends. Next: `decider`. Times are milliseconds by the
runtime's clock, 0 where unknown; messages are one line in the runtime's words.
"""

from __future__ import annotations

from typing import Literal

from chronolet_schemas.envelope import Signal


class Answer(Signal, frozen=True, kw_only=True):
    """Base of all answers."""

    subject: str
    intent: str


class SpecKept(Answer, frozen=True, kw_only=True):
    """The changed spec is on the disk."""


class SandboxMade(Answer, frozen=True, kw_only=True):
    """Progress of StartSandbox: the sandbox exists, and is started next."""

    id: str


class SandboxUp(Answer, frozen=True, kw_only=True):
    """The sandbox runs. `ip` is empty where the runtime gives none; `host_ip` is the node's own address."""

    id: str
    ip: str = ""
    host_ip: str = ""
    started_at: int


class SandboxDown(Answer, frozen=True, kw_only=True):
    """The sandbox is dead. From StartSandbox: it had been started before and is dead by now."""

    id: str
    exit_code: int = 0
    started_at: int = 0
    finished_at: int = 0


class SandboxRefused(Answer, frozen=True, kw_only=True):
    """The sandbox could not be started; nothing of this attempt is left."""

    message: str


class PullBegan(Answer, frozen=True, kw_only=True):
    """Progress of EnsureImage: the image is not there (or the policy says Always), it is being fetched.

    `lost` are the names of Secrets that were to be used and cannot be read.
    """

    lost: tuple[str, ...] = ()


class PullProgress(Answer, frozen=True, kw_only=True):
    """Progress of EnsureImage: so much has come of the layers that are known so far."""

    done_bytes: int
    total_bytes: int


class ImagePresent(Answer, frozen=True, kw_only=True):
    """The image is there. `digest` is by what name its registry knows it (`host/path@sha256:...`), empty if by none.

    `pulled` says whether it was fetched; then `milliseconds` says how long that took, after a wait for its turn of
    `waited_milliseconds`.
    """

    image_id: str
    digest: str = ""
    pulled: bool
    milliseconds: int = 0
    waited_milliseconds: int = 0
    size_bytes: int = 0


class ImageRefused(Answer, frozen=True, kw_only=True):
    """The image cannot be had."""

    reason: Literal["ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable"]
    message: str


class ContainerMade(Answer, frozen=True, kw_only=True):
    """The container exists and was never started."""

    id: str


class ContainerUp(Answer, frozen=True, kw_only=True):
    """The container runs."""

    id: str
    started_at: int


class ProcessEnded(Answer, frozen=True, kw_only=True):
    """Progress of StopContainer: the container's process has ended. The runtime says how when it has tidied up."""

    id: str


class ContainerDead(Answer, frozen=True, kw_only=True):
    """The container ran and is dead. `reason`: Completed, Error, OOMKilled, ContainerStatusUnknown."""

    id: str
    exit_code: int
    reason: str
    message: str = ""
    started_at: int = 0
    finished_at: int = 0


class ContainerRefused(Answer, frozen=True, kw_only=True):
    """The container could not be created (`id` empty) or started (`id` given, `exit_code` the runtime's, else 128).

    `reason` FailedMount: a volume of the pod could not be had, so nothing was tried.
    """

    reason: Literal["CreateContainerError", "RunContainerError", "CreateContainerConfigError", "FailedMount"]
    message: str
    id: str = ""
    exit_code: int = 128


class StopRefused(Answer, frozen=True, kw_only=True):
    """The runtime would not stop it; it may still run."""

    message: str


class HookPrepared(Answer, frozen=True, kw_only=True):
    """The exec is made, and not begun."""

    exec_id: str


class HookRefused(Answer, frozen=True, kw_only=True):
    """The exec could not be made."""

    message: str


class HookDone(Answer, frozen=True, kw_only=True):
    """The hook came to its end. `failed`: its command did not exit with 0, or its request got no good answer; then
    `message` says so in the kubelet's words, output included.
    """

    failed: bool = False
    message: str = ""


class HookUnfinished(Answer, frozen=True, kw_only=True):
    """The hook had not ended by its deadline; it may go on."""


class HookOutcomeUnknown(Answer, frozen=True, kw_only=True):
    """The exec was begun, or may have been, and the runtime knows nothing of it any more."""

    message: str


class ExitRead(Answer, frozen=True, kw_only=True):
    """What the dead container left: its termination message, which may be empty."""

    message: str = ""
    oom_killed: bool = False


class CleanedUp(Answer, frozen=True, kw_only=True):
    """Nothing of the pod's uid is left."""


class CleanupRefused(Answer, frozen=True, kw_only=True):
    """Something is left."""

    message: str
