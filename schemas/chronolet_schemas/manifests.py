"""What the sources want: commands from the CLI, and the events by which `manifests` tells the pods.

Source: pkg/kubelet/config. A pod's key is `namespace/name`; a source is `file:<path>` or `apply`.
"""

from __future__ import annotations

import msgspec

from chronolet_schemas.envelope import Command, Event, Message
from chronolet_schemas.podspec import Pod
from chronolet_schemas.registry import registered


class KeptSecret(Message, frozen=True, kw_only=True):
    """A Secret, `secret` its namespace/name. What it holds lies in the state folder under its digest, never here."""

    secret: str
    type: str
    digest: str


@registered
class ApplyPods(Command, frozen=True, kw_only=True):
    """`apply -f`: all pods and Secrets of one call, decided in one step. Specs are defaulted and validated by the
    sender, who has put into the state folder what the Secrets hold.
    """

    pods: tuple[Pod, ...]
    secrets: tuple[KeptSecret, ...] = ()


@registered
class DeletePods(Command, frozen=True, kw_only=True):
    """`delete`: pods and Secrets by key. `grace_period_seconds` None takes each pod's own.

    `ending` are the uids, by key, of those among them that the sender has seen end already: they may end sooner.
    """

    pods: tuple[str, ...]
    grace_period_seconds: int | None = None
    ending: dict[str, str] = msgspec.field(default_factory=dict)
    secrets: tuple[str, ...] = ()


class AdoptedPod(Message, frozen=True, kw_only=True):
    """A pod that ran before the log began: what its source wanted of it last."""

    pod: str
    uid: str
    source: str
    digest: str
    pull_secrets: tuple[str, ...] = ()


class AdoptedSecret(KeptSecret, frozen=True, kw_only=True):
    """A Secret that was kept before the log began, and whose wish it was."""

    source: str


@registered
class AdoptPods(Command, frozen=True, kw_only=True):
    """The log is new: these pods are wanted as they were. Sent by the node itself, before any source is read.

    `left_alone` are lines about what runs or was kept and could not be taken for a pod. `end_lost`: the log is not new,
    but has lost its end; these pods are wanted in place of those that it knows under their names.
    """

    pods: tuple[AdoptedPod, ...]
    left_alone: tuple[str, ...] = ()
    secrets: tuple[AdoptedSecret, ...] = ()
    end_lost: bool = False


@registered
class PodAdopted(Event, frozen=True, kw_only=True):
    """A pod is wanted as it was before the log began. Its spec stands in the `pod.PodAdopted` of the same uid.

    `pull_secrets` are the names of its imagePullSecrets.
    """

    pod: str
    uid: str
    source: str
    digest: str
    pull_secrets: tuple[str, ...] = ()

    def subject(self) -> str:
        return f"pod/{self.pod}"


@registered
class AdoptionFinished(Event, frozen=True, kw_only=True):
    """All that ran before the log began is known again: so many pods. `left_alone` was not touched, and will not be."""

    pods: int
    left_alone: tuple[str, ...] = ()


@registered
class PodApplied(Event, frozen=True, kw_only=True):
    """A source wants this pod as it stands here. The one place beside `pod.SpecAccepted` where the spec is written.

    `pull_secrets` are the digests, by name, of those of its imagePullSecrets that there are.
    """

    pod: str
    uid: str
    source: str
    digest: str
    manifest: Pod
    pull_secrets: dict[str, str] = msgspec.field(default_factory=dict)

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
class PullSecretsChanged(Event, frozen=True, kw_only=True):
    """Of the imagePullSecrets of this pod there are other ones now, or with other content: digests by name."""

    pod: str
    uid: str
    pull_secrets: dict[str, str]

    def subject(self) -> str:
        return f"pod/{self.pod}"


class SecretEvent(Event, frozen=True, kw_only=True):
    """About a Secret; `secret` is namespace/name."""

    secret: str

    def subject(self) -> str:
        return f"secret/{self.secret}"


@registered
class SecretApplied(SecretEvent, frozen=True, kw_only=True):
    """A source wants this Secret with this content; it lies in the state folder under the digest.

    `replaces` is the digest that it had before, empty for a new one.
    """

    type: str
    digest: str
    source: str
    replaces: str = ""


@registered
class SecretWithdrawn(SecretEvent, frozen=True, kw_only=True):
    """A source wants this Secret no longer. What it held is removed from the state folder."""

    digest: str
    source: str


@registered
class SecretUnchanged(SecretEvent, frozen=True, kw_only=True):
    """An `apply` asked for a Secret that is already there with this content."""


@registered
class SecretRefused(SecretEvent, frozen=True, kw_only=True):
    """A source's wish for this Secret was refused: another source has the name, or it is not there to be deleted."""

    source: str
    reason: str


@registered
class FileAccepted(Event, frozen=True, kw_only=True):
    """A manifest file was read; the pods it holds now, key to uid. Findings name fields that are not honoured.

    `secrets` are the Secrets it holds, key to digest.
    """

    path: str
    digest: str
    pods: dict[str, str]
    findings: tuple[str, ...] = ()
    secrets: dict[str, str] = msgspec.field(default_factory=dict)

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
