"""Decide which Pods and Secrets the sources request. Pure.

A source is a manifest file or `apply`; a name belongs to the source that requested it first.

Input: commands of `apply`, `delete` and adoption, signals of the folder watch. Output: events of `manifests`. Next:
`pod`. Source: pkg/kubelet/config.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from chronolet.kernel.decider import Decider, Effect
from chronolet.manifests import secrets, signals, wanted
from chronolet.manifests.evolve import evolve
from chronolet.manifests.identity import applied_uid
from chronolet.manifests.state import APPLY, File, State, Wanted, file_source
from chronolet_schemas import kube_events, manifests
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Pod
from chronolet_schemas.podspec import digest as digest_of

_FolderSignal = signals.FileRead | signals.FileGone | signals.FolderListed | signals.FolderUnreadable
ManifestsMessage = manifests.ApplyPods | manifests.DeletePods | manifests.AdoptPods | _FolderSignal
"""Every message that the kind handles."""


def decide(state: State, message: ManifestsMessage, _now: int) -> Sequence[Event]:
    """Return the events that follow from one message; every command yields at least one event."""
    events = _decided(state, message)
    return (*events, *secrets.pull_secret_changes(state, _folded(state, events), events))


def _folded(state: State, events: Iterable[Event]) -> State:
    for event in events:
        state = evolve(state, event)
    return state


def _decided(state: State, message: ManifestsMessage) -> Sequence[Event]:
    match message:
        case manifests.ApplyPods():
            return tuple(_apply(state, message)) or _empty("pods", "an apply")
        case manifests.DeletePods():
            return tuple(_delete(state, message)) or _empty("names", "a delete")
        case manifests.AdoptPods():
            return tuple(_adopt(state, message))
        case _:
            return tuple(_folder(state, message))


def _folder(state: State, message: _FolderSignal) -> Iterable[Event]:
    match message:
        case signals.FileRead():
            return _file(state, message)
        case signals.FileGone():
            return _gone(state, message.path) if message.path in state.files else ()
        case signals.FolderListed():
            return _listed(state, message)
        case signals.FolderUnreadable():
            return () if state.unreadable else (_unreadable(message),)
        case _:
            assert_never(message)


def _empty(what: str, command: str) -> Sequence[Event]:
    return (manifests.PodRefused(pod="", source=APPLY, reason=f"no {what}: {command} needs at least one"),)


def _unreadable(message: signals.FolderUnreadable) -> Event:
    return manifests.FolderUnreadable(path=message.path, error=message.error or "cannot be listed")


def _apply(state: State, command: manifests.ApplyPods) -> Iterator[Event]:
    """Apply a command: Secrets first, because its pods may use them."""
    kept = tuple(secrets.apply(state, command.secrets))
    yield from kept
    state = _folded(state, kept)
    pods = state.pods
    for pod in command.pods:
        before, digest = pods.get(pod.key), digest_of(pod)
        if before is not None and before.source != APPLY:
            yield _refused(pod.key, APPLY, before.source)
        elif before is not None and before.digest == digest:
            yield manifests.ApplyUnchanged(pod=pod.key)
        else:
            uid = before.uid if before else applied_uid(request=command.request, pod=pod.key)
            yield _applied(state, pod, uid=uid, source=APPLY, digest=digest)
            pods = pods.set(pod.key, Wanted(uid=uid, source=APPLY, digest=digest))


def _delete(state: State, command: manifests.DeletePods) -> Iterator[Event]:
    for key in dict.fromkeys(command.pods):
        found, ending = state.pods.get(key), _ending(command, key)
        if ending is not None and (found is None or found.uid != ending.uid):
            yield _withdrawn(key, ending, command.grace_period_seconds)
        if found is not None and found.source != APPLY:
            reason = f"{key} comes from {found.source}: remove it from that file, or the file, to delete it"
            yield manifests.PodRefused(pod=key, source=APPLY, reason=reason)
        elif found is not None:
            yield _withdrawn(key, found, command.grace_period_seconds)
        elif ending is None:
            yield manifests.PodRefused(pod=key, source=APPLY, reason=f'pods "{key}" not found')
    yield from secrets.delete(state, command.secrets)


def _ending(command: manifests.DeletePods, key: str) -> Wanted | None:
    """Return the terminating pod `key` that the sender of the command has seen; None if there is none."""
    uid = command.ending.get(key)
    return Wanted(uid=uid, source=APPLY, digest="") if uid else None


def _adopt(state: State, command: manifests.AdoptPods) -> Iterator[Event]:
    """Record what was requested before the log began. It remains requested until its source is read and requests
    something else. If two sources requested the same pod, the later one is refused.
    """
    yield from secrets.adopt(state, command.secrets)
    adopted: dict[str, manifests.AdoptedPod] = {}
    for one in command.pods:
        held = adopted.get(one.pod) or (None if command.end_lost else state.pods.get(one.pod))
        if held is not None:
            yield _refused(one.pod, one.source, held.source)
            continue
        adopted[one.pod] = one
        yield manifests.PodAdopted(
            pod=one.pod, uid=one.uid, source=one.source, digest=one.digest, pull_secrets=one.pull_secrets
        )
    yield manifests.AdoptionFinished(pods=len(adopted), left_alone=command.left_alone)


def _file(state: State, message: signals.FileRead) -> Iterator[Event]:
    """Apply the current content of a file in one step: withdraw or change its former pods, apply new ones. If the file
    has errors, it is refused and its former pods are left unchanged.
    """
    known = state.files.get(message.path)
    if message.errors:
        errors = tuple(message.errors)
        if known is None or (known.digest, known.errors) != (message.digest, errors):
            yield manifests.FileRefused(path=message.path, digest=message.digest, errors=errors)
        return
    held = {one.manifest.key: one.uid for one in reversed(message.pods)}
    kept = {one.secret: one.digest for one in message.secrets}
    read = File(digest=message.digest, pods=held, findings=tuple(message.findings), secrets=kept)
    if read != known:
        yield manifests.FileAccepted(
            path=message.path, digest=read.digest, pods=held, findings=read.findings, secrets=kept
        )
    source = file_source(message.path)
    for key, former in _pods_of(state, source):
        if key not in held:
            yield _withdrawn(key, former)
    changes = tuple(secrets.of_file(state, source, message.secrets, reported=read == known))
    yield from changes
    yield from _file_pods(_folded(state, changes), message, source, reported=read == known)


def _file_pods(state: State, message: signals.FileRead, source: str, *, reported: bool) -> Iterator[Event]:
    """Apply the pods of a file in the file's order. `reported`: the refusals for this content have already been
    recorded.
    """
    mine: set[str] = set()
    for one in message.pods:
        key = one.manifest.key
        before = state.pods.get(key)
        if key in mine or (before is not None and before.source != source):
            if not reported:
                yield _refused(key, source, source if before is None or key in mine else before.source)
                yield _duplicate_name(one, source)
            continue
        mine.add(key)
        if before is None or before.uid != one.uid:
            if before is not None:
                yield _withdrawn(key, before)
            yield _applied(state, one.manifest, uid=one.uid, source=source, digest=one.digest)


def _gone(state: State, path: str) -> Iterator[Event]:
    yield manifests.FileVanished(path=path)
    source = file_source(path)
    for key, held in _pods_of(state, source):
        yield _withdrawn(key, held)
    yield from secrets.of_file(state, source, (), reported=True)


def _listed(state: State, message: signals.FolderListed) -> Iterator[Event]:
    """Handle a complete listing of the folder: missing files were removed, possibly while the agent was down."""
    if not state.listed or state.unreadable:
        yield manifests.FolderRead(path=message.path, files=len(message.files))
    for path in sorted(set(state.files) - set(message.files)):
        yield from _gone(state, path)


def _pods_of(state: State, source: str) -> Sequence[tuple[str, Wanted]]:
    """Return the pods of a source, sorted by name."""
    return sorted((key, one) for key, one in state.pods.items() if one.source == source)


def _applied(state: State, pod: Pod, *, uid: str, source: str, digest: str) -> Event:
    return manifests.PodApplied(
        pod=pod.key,
        uid=uid,
        source=source,
        digest=digest,
        manifest=pod,
        pull_secrets=secrets.digests(state, pod.key, secrets.names(pod)),
    )


def _withdrawn(key: str, one: Wanted, grace_period_seconds: int | None = None) -> Event:
    return manifests.PodWithdrawn(pod=key, uid=one.uid, source=one.source, grace_period_seconds=grace_period_seconds)


def _refused(key: str, source: str, owner: str) -> Event:
    return manifests.PodRefused(pod=key, source=source, reason=already_defined(key, source, owner))


def already_defined(key: str, source: str, owner: str) -> str:
    """Return why a pod of `source` is refused if a pod of `owner` has the same name."""
    return f"{key} is already defined by {owner}; {source} cannot define a pod of the same name"


def _duplicate_name(one: signals.FilePod, source: str) -> Event:
    """Build the KubeEvent for a duplicate name in a file.

    A client of `apply` receives the refusal as the reply to its command; for a file, there is nobody to reply to.
    Source: pkg/kubelet/config/config.go.
    """
    about = one.manifest.metadata
    pod = f"{about.name}_{about.namespace}({one.uid})"
    return kube_events.Recorded(
        object_kind="Pod",
        namespace=about.namespace,
        name=about.name,
        uid=one.uid,
        severity="Warning",
        reason="FailedValidation",
        message=f'Error validating pod {pod} from {source} due to duplicate pod name "{about.name}", ignoring',
    )


def due(_state: State) -> int | None:
    """Return None: manifests has no timers."""
    return None


def outstanding(state: State) -> Sequence[Effect]:
    """Return the two standing effects, which run in every state: watch the folder, remove unused Secret data."""
    used = tuple(sorted({one.digest for one in state.secrets.values()}))
    return (
        wanted.WatchFolder(subject="folder", intent=f"watch/{state.rereads}"),
        wanted.KeepSecrets(subject="secrets", intent=f"keep/{state.secret_changes}", used=used),
    )


DECIDER = Decider(initial=State(), decide=decide, evolve=evolve, due=due, outstanding=outstanding)
