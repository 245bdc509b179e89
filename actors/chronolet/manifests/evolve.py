"""Fold the events of the `manifests` kind into State. Validates nothing and cannot fail.

Input: State, an event. Output: the next State. Next: `decider`.
"""

from __future__ import annotations

import immutables
from msgspec.structs import replace

from chronolet.manifests import secrets
from chronolet.manifests.state import File, Kept, State, Wanted, file_path, file_source
from chronolet_schemas import manifests
from chronolet_schemas.envelope import Event

_UNREAD = File(digest="")
"""A manifest file that is known but has not been read yet."""


def evolve(state: State, event: Event) -> State:
    """Return the state after one event; events of other kinds change nothing."""
    match event:
        case manifests.PodApplied():
            names = secrets.names(event.manifest)
            one = Wanted(uid=event.uid, source=event.source, digest=event.digest, pull_secrets=names)
            return replace(state, pods=state.pods.set(event.pod, one))
        case manifests.PodAdopted():
            one = Wanted(uid=event.uid, source=event.source, digest=event.digest, pull_secrets=event.pull_secrets)
            return replace(state, pods=state.pods.set(event.pod, one), files=_adopted_file(state.files, event))
        case manifests.PodWithdrawn():
            return _without(state, event)
        case manifests.SecretEvent():
            return _secret(state, event)
        case _:
            return _folder(state, event)


def _folder(state: State, event: Event) -> State:
    match event:
        case manifests.FolderRead():
            return replace(state, listed=True, unreadable="")
        case manifests.FolderUnreadable():
            return replace(state, unreadable=event.error)
        case _:
            return replace(state, files=_files(state.files, event))


def _adopted_file(files: immutables.Map[str, File], event: manifests.PodAdopted) -> immutables.Map[str, File]:
    """Register the source file as unread, so that both its later content and its absence count as a change."""
    path = file_path(event.source)
    if not path:
        return files
    held = files.get(path) or _UNREAD
    return files.set(path, replace(held, pods={**held.pods, event.pod: event.uid}))


def _secret(state: State, event: manifests.SecretEvent) -> State:
    match event:
        case manifests.SecretApplied():
            kept = Kept(type=event.type, digest=event.digest, source=event.source)
            held = state.secrets.set(event.secret, kept)
            files = state.files
            if (path := file_path(event.source)) and path not in files:  # an adopted Secret
                files = files.set(path, replace(_UNREAD, secrets={event.secret: event.digest}))
            return replace(state, secrets=held, secret_changes=state.secret_changes + 1, files=files)
        case manifests.SecretWithdrawn() if event.secret in state.secrets:
            refused = any(secrets.was_refused(event, path, file) for path, file in state.files.items())
            return replace(
                state,
                secrets=state.secrets.delete(event.secret),
                secret_changes=state.secret_changes + 1,
                rereads=state.rereads + refused,
            )
        case _:
            return state


def _files(files: immutables.Map[str, File], event: Event) -> immutables.Map[str, File]:
    match event:
        case manifests.FileAccepted():
            read = File(digest=event.digest, pods=event.pods, findings=event.findings, secrets=event.secrets)
            return files.set(event.path, read)
        case manifests.FileRefused():
            held = replace(files.get(event.path) or _UNREAD, digest=event.digest, findings=(), errors=event.errors)
            return files.set(event.path, held)
        case manifests.FileVanished() if event.path in files:
            return files.delete(event.path)
        case _:
            return files


def _without(state: State, event: manifests.PodWithdrawn) -> State:
    """Free the name. A file whose pod of this name was refused is read again, because that pod's spec is not stored
    here.
    """
    held = state.pods.get(event.pod)
    if held is None or held.uid != event.uid:
        return state  # already withdrawn; this event only shortens the grace period
    pods = state.pods.delete(event.pod)
    refused = any(event.pod in file.pods and file_source(path) != event.source for path, file in state.files.items())
    return replace(state, pods=pods, rereads=state.rereads + refused)
