"""The Secrets that a pod's image pulls may send to registries. Pure.

Input: State, and the pod's imagePullSecrets from `manifests`. Output: `pod.PullSecretsChanged`, and the Secrets of a
pull. Next: `record`, `plan`, `outstanding`, `event_reasons`. Source: kubelet_pods.go (getPullSecretsForPod). Only
digests are handled here; the content of the Secrets is in the state folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from chronolet.pod import wanted
from chronolet.pod.state import State, Successor
from chronolet_schemas import manifests, pod
from chronolet_schemas.envelope import Event


def with_spec(state: State, key: str, uid: str, digests: Mapping[str, str]) -> Sequence[Event]:
    """Return PullSecretsChanged if an accepted spec's Secrets differ from the known ones. `key`: the pod's
    namespace/name.
    """
    before = state.pull_secrets if uid == state.uid else {}
    return (pod.PullSecretsChanged(pod=key, uid=uid, pull_secrets=dict(digests)),) if digests != before else ()


def changed(state: State, message: manifests.PullSecretsChanged) -> Sequence[Event]:
    """Return the events for changed Secrets of the current pod or of its successor."""
    if message.uid == state.uid:
        return with_spec(state, state.pod, state.uid, message.pull_secrets)
    following = state.successor
    if following is None or message.uid != following.uid:
        return ()
    return (awaits(state, replace(following, pull_secrets=message.pull_secrets)),)


def awaits(state: State, following: Successor) -> Event:
    """Return the event that makes `following` the successor of the current pod."""
    return pod.SuccessorAwaits(
        pod=state.pod,
        uid=state.uid,
        successor=following.uid,
        source=following.source,
        digest=following.digest,
        manifest=following.manifest,
        pull_secrets=following.pull_secrets,
    )


def usable(state: State) -> tuple[wanted.PullSecret, ...]:
    """Return those of the spec's imagePullSecrets that exist, in the spec's order; see `missing` for the others."""
    digests = state.pull_secrets
    return tuple(wanted.PullSecret(name=name, digest=digests[name]) for name in _names(state) if name in digests)


def missing(state: State) -> Sequence[str]:
    """Return the names of Secrets in the spec that do not exist."""
    return tuple(name for name in _names(state) if name not in state.pull_secrets)


def _names(state: State) -> Sequence[str]:
    return tuple(dict.fromkeys(one.name for one in state.manifest.spec.image_pull_secrets if one.name))
