"""A pod's coming and going: accepted, adopted, replaced, told to end, cleaned up, ended.

Source: pkg/kubelet/pod_workers.go.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Command, Message
from chronolet_schemas.pod.base import EndReason, PodEvent
from chronolet_schemas.podspec import Pod
from chronolet_schemas.registry import registered


@registered
class SpecAccepted(PodEvent, frozen=True, kw_only=True):
    """The pod's life under `uid` begins, or goes on with a changed spec. `accepted_at` is its start time.

    `sandbox_hash` and `container_hashes` (by name) stand for the definitions: they are compared with the hash that a
    sandbox or container was started with, and are written down so that no later release hashes differently.
    """

    source: str
    digest: str
    manifest: Pod
    accepted_at: int
    sandbox_hash: str
    container_hashes: dict[str, str]


@registered
class PullSecretsChanged(PodEvent, frozen=True, kw_only=True):
    """The Secrets that the registries of the pod's images may be told: digests by name, of those that there are."""

    pull_secrets: dict[str, str]


@registered
class SpecKept(PodEvent, frozen=True, kw_only=True):
    """The changed spec of this digest lies beside the log, for the day that the log is lost."""

    digest: str


class FoundContainer(Message, frozen=True, kw_only=True):
    """One container of a pod as the runtime had it when a new log began; `container` is POD for a sandbox.

    What was made and never started is `created`; what could not be started, `exited`. Times by the runtime's clock.
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
    """What device plugins gave it: ids by resource."""


class Ending(Message, frozen=True, kw_only=True):
    """The end of a pod that was asked for, as TerminationRequested says it; kept beside the log until it is over."""

    reason: EndReason
    grace_period_seconds: int
    deadline: int


@registered
class AdoptPod(Command, frozen=True, kw_only=True):
    """The log is new, and this pod ran before it: go on with it as it was found. Sent by the node itself.

    `ending` says that its end had begun. `host_ip` is the node's own address. `end_lost`: the log is not new, but has
    lost its end; what was found replaces what the log says of the pod where that is less.
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
    """The pod's life under `uid` goes on in a log that knows nothing of its beginning; nothing was touched.

    Stands for SpecAccepted and all that came after it. `containers` are the newest attempts that came to run; `before`
    the last dead attempt of what runs now.
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
    """A pod of this name lives already: what was found is none of its own."""

    reason: str


@registered
class SuccessorAwaits(PodEvent, frozen=True, kw_only=True):
    """Another pod of the same name is wanted (`successor` its uid): this one ends first. Null: no longer wanted."""

    successor: str | None
    source: str = ""
    digest: str = ""
    manifest: Pod | None = None
    pull_secrets: dict[str, str] = msgspec.field(default_factory=dict)


@registered
class TerminationRequested(PodEvent, frozen=True, kw_only=True):
    """The pod is to end: containers first, then its sandbox, all gone by `deadline` plus what removal takes.

    Asked for again with an earlier deadline, the earlier one holds. `resumed`: it had been asked for in a log that was
    lost, and preStop hooks may have been begun: none is run.
    """

    reason: EndReason
    grace_period_seconds: int
    deadline: int
    resumed: bool = False


@registered
class PodFailed(PodEvent, frozen=True, kw_only=True):
    """The pod is over, whatever its containers are: they are stopped, and the pod stays, with this reason."""

    reason: str
    message: str


@registered
class CleanupRequested(PodEvent, frozen=True, kw_only=True):
    """Intent: everything is dead; remove containers, sandboxes and volumes of this uid."""


@registered
class CleanupFailed(PodEvent, frozen=True, kw_only=True):
    """Something of the pod could not be removed; tried again at `retry_at`."""

    message: str
    retry_at: int


@registered
class PodEnded(PodEvent, frozen=True, kw_only=True):
    """Nothing of this uid is left. The entity is gone, or begins again with its successor."""
