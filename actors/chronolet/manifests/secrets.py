"""Decide which Secrets the sources define, and notify the pods that use them. Pure.

Input: the state, Secrets and the digests of their data. Output: events about them. Next: `decider`. Source:
pkg/kubelet/secret, and kubelet_pods.go (getPullSecretsForPod). The kubelet fetches a pod's Secrets on every sync; here
a pod is notified when they change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronolet.manifests import signals
from chronolet.manifests.state import APPLY, File, Kept, State, Wanted, file_source
from chronolet_schemas import manifests
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Pod


def apply(state: State, requested: Sequence[manifests.KeptSecret]) -> Iterator[Event]:
    """Process the Secrets of an `apply`; if two have the same name, the first one wins."""
    seen: set[str] = set()
    for one in requested:
        held = state.secrets.get(one.secret)
        if one.secret in seen or (held is not None and held.source != APPLY):
            yield _refused(one.secret, APPLY, APPLY if held is None or one.secret in seen else held.source)
        elif held is not None and held.digest == one.digest:
            yield manifests.SecretUnchanged(secret=one.secret)
        else:
            yield _applied(one, APPLY, held)
        seen.add(one.secret)


def delete(state: State, keys: Sequence[str]) -> Iterator[Event]:
    """Process the Secrets of a `delete`."""
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
    """Record the Secrets that were defined before the log began."""
    seen: set[str] = set()
    for one in found:
        if one.secret not in state.secrets and one.secret not in seen:
            seen.add(one.secret)
            yield _applied(one, one.source, None)


def of_file(state: State, source: str, read: Sequence[signals.FileSecret], *, reported: bool) -> Iterator[Event]:
    """Apply the current Secrets of a file. `reported`: the refusals for this content have already been recorded."""
    held = {one.secret for one in read}
    for key, kept in of(state, source):
        if key not in held:
            yield manifests.SecretWithdrawn(secret=key, digest=kept, source=source)
    for one in read:
        before = state.secrets.get(one.secret)
        if before is not None and before.source != source:
            if not reported:
                yield _refused(one.secret, source, before.source)
        elif before is None or before.digest != one.digest:
            yield _applied(one, source, before)


def of(state: State, source: str) -> Sequence[tuple[str, str]]:
    """Return the Secrets of a source with their digests, sorted by name."""
    return sorted((key, one.digest) for key, one in state.secrets.items() if one.source == source)


def digests(state: State, pod: str, names: Sequence[str]) -> dict[str, str]:
    """Map names to digests, for those of `names` that name an existing Secret in the pod's namespace."""
    namespace = pod.partition("/")[0]
    found = {name: state.secrets.get(f"{namespace}/{name}") for name in names}
    return {name: one.digest for name, one in found.items() if one is not None}


def names(pod: Pod) -> tuple[str, ...]:
    """Return the names of the Secrets that a pod uses to pull its images."""
    return tuple(dict.fromkeys(one.name for one in pod.spec.image_pull_secrets if one.name))


def pull_secret_changes(before: State, after: State, events: Sequence[Event]) -> Iterator[Event]:
    """Yield PullSecretsChanged for each pod whose pull Secrets have changed, except pods whose PodApplied in `events`
    already contains them.
    """
    if before.secrets is after.secrets and before.pods is after.pods:
        return
    applied = {event.pod for event in events if isinstance(event, manifests.PodApplied)}
    for key, one in sorted(after.pods.items()):
        if one.pull_secrets and key not in applied:
            now = digests(after, key, one.pull_secrets)
            if now != _notified(before, key, one):
                yield manifests.PullSecretsChanged(pod=key, uid=one.uid, pull_secrets=now)


def _notified(before: State, key: str, one: Wanted) -> dict[str, str]:
    """Return the digests, by name, that the pod has been notified of; empty if it was just adopted."""
    held = before.pods.get(key)
    return digests(before, key, one.pull_secrets) if held is not None and held.uid == one.uid else {}


def was_refused(event: manifests.SecretWithdrawn, path: str, file: File) -> bool:
    """Whether this file defines a Secret that was refused because of the withdrawn one."""
    return event.secret in file.secrets and file_source(path) != event.source


def _applied(one: manifests.KeptSecret | signals.FileSecret, source: str, before: Kept | None) -> Event:
    replaces = before.digest if before is not None else ""
    return manifests.SecretApplied(
        secret=one.secret, type=one.type, digest=one.digest, source=source, replaces=replaces
    )


def _refused(key: str, source: str, owner: str) -> Event:
    return manifests.SecretRefused(secret=key, source=source, reason=already_defined(key, source, owner))


def already_defined(key: str, source: str, owner: str) -> str:
    """Return why a Secret of `source` is refused if a Secret of `owner` has the same name."""
    return f"Secret {key} is already defined by {owner}; {source} cannot define a Secret of the same name"
