"""The life cycle of a pod: accepted, adopted, replaced, terminated, cleaned up, ended.

Source: pkg/kubelet/pod_workers.go.
"""

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Command, Message
from chronolet_schemas.pod.base import EndReason, PodEvent
from chronolet_schemas.podspec import Pod
from chronolet_schemas.registry import registered


@registered
class SpecAccepted(PodEvent, frozen=True, kw_only=True):
    """The life of the pod under `uid` begins, or continues with a changed spec. `accepted_at` is the pod's start time.

    `sandbox_hash` and `container_hashes` (by name) identify the definitions. They are compared with the hash that a
    sandbox or container was started with. They are recorded because a later release might compute them differently.
    """

    source: str
    digest: str
    manifest: Pod
    accepted_at: int
    sandbox_hash: str
    container_hashes: dict[str, str]


@registered
class PullSecretsChanged(PodEvent, frozen=True, kw_only=True):
    """The Secrets available for pulling the pod's images have changed. `pull_secrets` maps the names of those that
    exist to digests.
    """

    pull_secrets: dict[str, str]


@registered
class SpecKept(PodEvent, frozen=True, kw_only=True):
    """The changed spec with this digest is stored outside the log, in case the log is lost."""

    digest: str


class FoundContainer(Message, frozen=True, kw_only=True):
    """A container of a pod as the runtime reported it for an adoption; `container` is POD for a sandbox.

    `created`: created but never started; a container that failed to start is `exited`. Times are taken from the
    runtime's clock.
    """

    container: str
    attempt: int
    id: str
    state: Literal["created", "running", "exited"]
    spec_hash: str = ""
    image_id: str = ""
    ip: str = ""
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: int = 0
    finished_at: int = 0
    devices: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The container's devices from device plugins: maps resources to device ids."""


class Ending(Message, frozen=True, kw_only=True):
    """A requested end of a pod, as in TerminationRequested; stored outside the log until the pod has ended."""

    reason: EndReason
    grace_period_seconds: int
    deadline: int


@registered
class AdoptPod(Command, frozen=True, kw_only=True):
    """Continue this pod, which was running before the log began, as it was found. Sent by the node itself when the log
    is new or has lost its newest entries (`end_lost`).

    `ending`: the pod was already terminating. `host_ip` is the node's own address. `end_lost`: the log already exists;
    if it knows less about the pod than was found, the pod is adopted as found, otherwise the command is refused.
    """

    pod: str
    uid: str
    source: str
    digest: str
    manifest: Pod
    accepted_at: int
    found: tuple[FoundContainer, ...] = ()
    host_ip: str = ""
    ending: Ending | None = None
    end_lost: bool = False


@registered
class PodAdopted(PodEvent, frozen=True, kw_only=True):
    """The life of the pod under `uid` continues in a log that is new or has lost its newest entries; nothing was
    touched.

    Replaces SpecAccepted and everything after it. `containers` are the newest attempts that were started; `before`
    contains, for each of them that is running, the last attempt before it that died.
    """

    source: str
    digest: str
    manifest: Pod
    accepted_at: int
    sandbox_hash: str
    container_hashes: dict[str, str]
    host_ip: str = ""
    sandbox: FoundContainer | None = None
    containers: tuple[FoundContainer, ...] = ()
    before: tuple[FoundContainer, ...] = ()


@registered
class AdoptionRefused(PodEvent, frozen=True, kw_only=True):
    """The pod was not adopted as found: the log already has a pod of this name and, if its newest entries were lost, is
    not behind what was found.
    """

    reason: str


@registered
class SuccessorAwaits(PodEvent, frozen=True, kw_only=True):
    """Another pod of the same name is requested (`successor` is its uid): this one ends first. `successor` is None if
    that request was withdrawn.
    """

    successor: str | None
    source: str = ""
    digest: str = ""
    manifest: Pod | None = None
    pull_secrets: dict[str, str] = msgspec.field(default_factory=dict)


@registered
class TerminationRequested(PodEvent, frozen=True, kw_only=True):
    """End the pod: containers first, then its sandbox, by `deadline` plus the time for removal.

    If repeated, the earlier deadline applies. `resumed`: the end was first requested in a log that was lost, and
    preStop hooks may already have started, so none is run.
    """

    reason: EndReason
    grace_period_seconds: int
    deadline: int
    resumed: bool = False


@registered
class PodFailed(PodEvent, frozen=True, kw_only=True):
    """The pod has failed with this reason, whatever its containers do: they are stopped, and the pod stays."""

    reason: str
    message: str


@registered
class CleanupRequested(PodEvent, frozen=True, kw_only=True):
    """Intent: everything is dead; remove the containers, sandboxes and volumes of this uid."""


@registered
class CleanupFailed(PodEvent, frozen=True, kw_only=True):
    """Part of the pod could not be removed; the removal is retried at `retry_at`."""

    message: str
    retry_at: int


@registered
class PodEnded(PodEvent, frozen=True, kw_only=True):
    """Everything that belonged to the pod with this uid has been removed. The entity is removed, or continues with the
    pod's successor.
    """
