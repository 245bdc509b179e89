"""What the sources want of Secrets, and which pods that concerns. Pure.

Comes in: the state, Secrets by name with the digest of what they hold. Goes out: events about them. Next: `decider`.
Source: pkg/kubelet/secret, and kubelet_pods.go (getPullSecretsForPod), which asks for a pod's Secrets at every sync;
here a pod is told when they change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronolet.manifests import signals
from chronolet.manifests.state import APPLY, File, Kept, State, Wanted, file_source
from chronolet_schemas import manifests
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Pod


def apply(state: State, wanted: Sequence[manifests.KeptSecret]) -> Iterator[Event]:
    """The Secrets of an `apply`; of two of one name the first."""
    seen: set[str] = set()
    for one in wanted:
        held = state.secrets.get(one.secret)
        if one.secret in seen or (held is not None and held.source != APPLY):
            yield _refused(one.secret, APPLY, APPLY if held is None or one.secret in seen else held.source)
        elif held is not None and held.digest == one.digest:
            yield manifests.SecretUnchanged(secret=one.secret)
        else:
            yield _applied(one, APPLY, held)
        seen.add(one.secret)


def delete(state: State, keys: Sequence[str]) -> Iterator[Event]:
    """The Secrets of a `delete`."""
    for key in dict.fromkeys(keys):
        held = state.secrets.get(key)
        if held is None:
            yield manifests.SecretRefused(secret=key, source=APPLY, reason=f'secrets "{key}" not found')
        elif held.source != APPLY:
            reason = f"Secret {key} comes from {held.source}: remove it from that file, or the file, to delete it"
            yield manifests.SecretRefused(secret=key, source=APPLY, reason=reason)
        else:
            yield manifests.SecretWithdrawn(secret=key, digest=held.digest, source=APPLY)


def adopt(state: State, found: Sequence[manifests.AdoptedSecret]) -> Iterator[Event]:
    """Secrets that were kept before the log began are wanted still."""
    seen: set[str] = set()
    for one in found:
        if one.secret not in state.secrets and one.secret not in seen:
            seen.add(one.secret)
            yield _applied(one, one.source, None)


def of_file(state: State, source: str, read: Sequence[signals.FileSecret], *, told: bool) -> Iterator[Event]:
    """The Secrets of a file as it is now. `told`: what is refused of this content was refused before."""
    held = {one.secret for one in read}
    for key, kept in of(state, source):
        if key not in held:
            yield manifests.SecretWithdrawn(secret=key, digest=kept, source=source)
    for one in read:
        before = state.secrets.get(one.secret)
        if before is not None and before.source != source:
            if not told:
                yield _refused(one.secret, source, before.source)
        elif before is None or before.digest != one.digest:
            yield _applied(one, source, before)


def of(state: State, source: str) -> Sequence[tuple[str, str]]:
    """The Secrets of a source and their digests, by name."""
    return sorted((key, one.digest) for key, one in state.secrets.items() if one.source == source)


def digests(state: State, pod: str, names: Sequence[str]) -> dict[str, str]:
    """Of these Secrets in the pod's namespace those that there are: digests by name."""
    namespace = pod.partition("/")[0]
    found = {name: state.secrets.get(f"{namespace}/{name}") for name in names}
    return {name: one.digest for name, one in found.items() if one is not None}


def names(pod: Pod) -> tuple[str, ...]:
    """The Secrets that a pod wants to use for its images."""
    return tuple(dict.fromkeys(one.name for one in pod.spec.image_pull_secrets if one.name))


def news(before: State, after: State, events: Sequence[Event]) -> Iterator[Event]:
    """What pods are to be told after these events: others than those whose spec was just told together with it."""
    if before.secrets is after.secrets and before.pods is after.pods:
        return
    told = {event.pod for event in events if isinstance(event, manifests.PodApplied)}
    for key, one in sorted(after.pods.items()):
        if one.pull_secrets and key not in told:
            now = digests(after, key, one.pull_secrets)
            if now != _known(before, key, one):
                yield manifests.PullSecretsChanged(pod=key, uid=one.uid, pull_secrets=now)


def _known(before: State, key: str, one: Wanted) -> dict[str, str]:
    """What the pod has been told; one that was adopted just now, nothing."""
    held = before.pods.get(key)
    return digests(before, key, one.pull_secrets) if held is not None and held.uid == one.uid else {}


def heir(event: manifests.SecretWithdrawn, path: str, file: File) -> bool:
    """Whether this file was refused the name that is free now."""
    return event.secret in file.secrets and file_source(path) != event.source


def _applied(one: manifests.KeptSecret | signals.FileSecret, source: str, before: Kept | None) -> Event:
    replaces = before.digest if before is not None else ""
    return manifests.SecretApplied(
        secret=one.secret, type=one.type, digest=one.digest, source=source, replaces=replaces
    )


def _refused(key: str, source: str, owner: str) -> Event:
    reason = f"Secret {key} is wanted by {owner} already; {source} cannot have a Secret of the same name"
    return manifests.SecretRefused(secret=key, source=source, reason=reason)
