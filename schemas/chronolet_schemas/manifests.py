"""What the sources want: commands from the CLI, and the events by which `manifests` tells the pods.

Source: pkg/kubelet/config. A pod's key is `namespace/name`; a source is `file:<path>` or `apply`.
"""

from __future__ import annotations

import msgspec

from chronolet_schemas.envelope import Command, Event, Message
from chronolet_schemas.podspec import Pod
from chronolet_schemas.registry import registered


@registered
class ApplyPods(Command, frozen=True, kw_only=True):
    """`apply -f`: all pods of one call, decided in one step. Specs are defaulted and validated by the sender."""

    pods: tuple[Pod, ...]


@registered
class DeletePods(Command, frozen=True, kw_only=True):
    """`delete`: pods by key. `grace_period_seconds` None takes each pod's own.

    `ending` are the uids, by key, of those among them that the sender has seen end already: they may end sooner.
    """

    pods: tuple[str, ...]
    grace_period_seconds: int | None = None
    ending: dict[str, str] = msgspec.field(default_factory=dict)


class AdoptedPod(Message, frozen=True, kw_only=True):
    """A pod that ran before the log began: what its source wanted of it last."""

    pod: str
    uid: str
    source: str
    digest: str


@registered
class AdoptPods(Command, frozen=True, kw_only=True):
    """The log is new: these pods are wanted as they were. Sent by the node itself, before any source is read.

    `left_alone` are lines about what runs or was kept and could not be taken for a pod.
    """

    pods: tuple[AdoptedPod, ...]
    left_alone: tuple[str, ...] = ()


@registered
class PodAdopted(Event, frozen=True, kw_only=True):
    """A pod is wanted as it was before the log began. Its spec stands in the `pod.PodAdopted` of the same uid."""

    pod: str
    uid: str
    source: str
    digest: str

    def subject(self) -> str:
        return f"pod/{self.pod}"


@registered
class AdoptionFinished(Event, frozen=True, kw_only=True):
    """All that ran before the log began is known again: so many pods. `left_alone` was not touched, and will not be."""

    pods: int
    left_alone: tuple[str, ...] = ()


@registered
class PodApplied(Event, frozen=True, kw_only=True):
    """A source wants this pod as it stands here. The one place beside `pod.SpecAccepted` where the spec is written."""

    pod: str
    uid: str
    source: str
    digest: str
    manifest: Pod

    def subject(self) -> str:
        return f"pod/{self.pod}"


@registered
class PodWithdrawn(Event, frozen=True, kw_only=True):
    """A source wants this pod no longer (`delete`, or its file is gone or holds another pod now); or, of one that is
    wanted no longer anyway, sooner than it was asked for before.
    """

    pod: str
    uid: str
    source: str
    grace_period_seconds: int | None = None

    def subject(self) -> str:
        return f"pod/{self.pod}"


@registered
class ApplyUnchanged(Event, frozen=True, kw_only=True):
    """An `apply` asked for what is already wanted."""

    pod: str

    def subject(self) -> str:
        return f"pod/{self.pod}"


@registered
class PodRefused(Event, frozen=True, kw_only=True):
    """A source's wish for this pod was refused: another source has the name, or it is not there to be deleted."""

    pod: str
    source: str
    reason: str

    def subject(self) -> str:
        return f"pod/{self.pod}"


@registered
class FileAccepted(Event, frozen=True, kw_only=True):
    """A manifest file was read; the pods it holds now, key to uid. Findings name fields that are not honoured."""

    path: str
    digest: str
    pods: dict[str, str]
    findings: tuple[str, ...] = ()

    def subject(self) -> str:
        return f"file/{self.path}"


@registered
class FileRefused(Event, frozen=True, kw_only=True):
    """A manifest file cannot be used: nothing of it is applied, what it held before stays."""

    path: str
    digest: str
    errors: tuple[str, ...]

    def subject(self) -> str:
        return f"file/{self.path}"


@registered
class FileVanished(Event, frozen=True, kw_only=True):
    """A manifest file is gone."""

    path: str

    def subject(self) -> str:
        return f"file/{self.path}"


@registered
class FolderUnreadable(Event, frozen=True, kw_only=True):
    """The manifest folder cannot be read; what runs is kept until it can."""

    path: str
    error: str


@registered
class FolderRead(Event, frozen=True, kw_only=True):
    """The manifest folder was listed for the first time, or again after it could not be read."""

    path: str
    files: int
