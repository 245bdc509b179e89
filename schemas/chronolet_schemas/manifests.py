"""Messages of `manifests`: commands, and events about the pods and Secrets that the sources define.

Source: pkg/kubelet/config. A pod's key is `namespace/name`; a source is `file:<path>` or `apply`.
"""

from __future__ import annotations

import msgspec

from chronolet_schemas.envelope import Command, Event, Message
from chronolet_schemas.podspec import Pod
from chronolet_schemas.registry import registered


class KeptSecret(Message, frozen=True, kw_only=True):
    """A Secret; `secret` is its namespace/name. Its data is in the state folder under its digest, never here."""

    secret: str
    type: str
    digest: str


@registered
class ApplyPods(Command, frozen=True, kw_only=True):
    """`apply -f`: all pods and Secrets of one call, decided in one step.

    The sender has defaulted and validated the specs, and has written the data of the Secrets to the state folder.
    """

    pods: tuple[Pod, ...]
    secrets: tuple[KeptSecret, ...] = ()


@registered
class DeletePods(Command, frozen=True, kw_only=True):
    """`delete`: pods and Secrets by key. Without `grace_period_seconds`, each pod's own grace period applies.

    `ending` maps the key of each pod that the sender has already seen terminating to the pod's uid: such a pod's grace
    period may be shortened.
    """

    pods: tuple[str, ...]
    grace_period_seconds: int | None = None
    ending: dict[str, str] = msgspec.field(default_factory=dict)
    secrets: tuple[str, ...] = ()


class AdoptedPod(Message, frozen=True, kw_only=True):
    """A pod that was running before the log began, as its source last defined it."""

    pod: str
    uid: str
    source: str
    digest: str
    pull_secrets: tuple[str, ...] = ()


class AdoptedSecret(KeptSecret, frozen=True, kw_only=True):
    """A Secret stored before the log began, with the source that defined it."""

    source: str


@registered
class AdoptPods(Command, frozen=True, kw_only=True):
    """Keep these pods desired as they were before the log began. Sent by the node itself when the log is new or has
    lost its newest entries (`end_lost`), before any source is read.

    `left_alone` are lines about running containers and stored manifests that could not be identified as a pod.
    `end_lost`: the log already exists; these pods replace pods of the same name in it.
    """

    pods: tuple[AdoptedPod, ...]
    left_alone: tuple[str, ...] = ()
    secrets: tuple[AdoptedSecret, ...] = ()
    end_lost: bool = False


@registered
class PodAdopted(Event, frozen=True, kw_only=True):
    """A pod stays desired as it was before the log began or lost its newest entries. Its spec is in the
    `pod.PodAdopted` with the same uid.

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
    """The adoption is complete; `pods` is the number of adopted pods. `left_alone` lists the containers and pods that
    could not be adopted: they are never touched unless `gc run --left-alone` asks for it.
    """

    pods: int
    left_alone: tuple[str, ...] = ()


@registered
class PodApplied(Event, frozen=True, kw_only=True):
    """A source requests this pod with this spec. Only this event and `pod.SpecAccepted` contain the spec.

    `pull_secrets` maps the name of each existing imagePullSecret to its digest.
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
    """A source no longer requests this pod (`delete`, or its file was removed or now defines another pod).

    If the pod had already been withdrawn, this event requests that it end sooner than was requested then.
    """

    pod: str
    uid: str
    source: str
    grace_period_seconds: int | None = None

    def subject(self) -> str:
        return f"pod/{self.pod}"


@registered
class ApplyUnchanged(Event, frozen=True, kw_only=True):
    """An `apply` requested what is already desired."""

    pod: str

    def subject(self) -> str:
        return f"pod/{self.pod}"


@registered
class PodRefused(Event, frozen=True, kw_only=True):
    """A source's request for this pod was refused: another source owns the name, or there is no such pod to delete."""

    pod: str
    source: str
    reason: str

    def subject(self) -> str:
        return f"pod/{self.pod}"


@registered
class PullSecretsChanged(Event, frozen=True, kw_only=True):
    """The pod's imagePullSecrets have changed: which of them exist, or their content. `pull_secrets` maps names to
    digests.
    """

    pod: str
    uid: str
    pull_secrets: dict[str, str]

    def subject(self) -> str:
        return f"pod/{self.pod}"


class SecretEvent(Event, frozen=True, kw_only=True):
    """Base class for events about a Secret; `secret` is namespace/name."""

    secret: str

    def subject(self) -> str:
        return f"secret/{self.secret}"


@registered
class SecretApplied(SecretEvent, frozen=True, kw_only=True):
    """A source defines this Secret with this content, which is in the state folder under the digest.

    `replaces` is the Secret's former digest, empty for a new Secret.
    """

    type: str
    digest: str
    source: str
    replaces: str = ""


@registered
class SecretWithdrawn(SecretEvent, frozen=True, kw_only=True):
    """A source no longer defines this Secret. Its data is removed from the state folder."""

    digest: str
    source: str


@registered
class SecretUnchanged(SecretEvent, frozen=True, kw_only=True):
    """An `apply` requested a Secret that already exists with this content."""


@registered
class SecretRefused(SecretEvent, frozen=True, kw_only=True):
    """A source's request for this Secret was refused: another source owns the name, or there is no such Secret to
    delete.
    """

    source: str
    reason: str


@registered
class FileAccepted(Event, frozen=True, kw_only=True):
    """A manifest file was read.

    `pods` maps the key of each pod in it to the pod's uid, `secrets` the key of each Secret to its digest. `findings`
    name the fields that are not honoured.
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
    """A manifest file is unusable: nothing in it is applied, and its former content stays in force."""

    path: str
    digest: str
    errors: tuple[str, ...]

    def subject(self) -> str:
        return f"file/{self.path}"


@registered
class FileVanished(Event, frozen=True, kw_only=True):
    """A manifest file no longer exists."""

    path: str

    def subject(self) -> str:
        return f"file/{self.path}"


@registered
class FolderUnreadable(Event, frozen=True, kw_only=True):
    """The manifest folder cannot be read; running pods are kept until it can be."""

    path: str
    error: str


@registered
class FolderRead(Event, frozen=True, kw_only=True):
    """The manifest folder was listed for the first time, or again after it could not be read."""

    path: str
    files: int
