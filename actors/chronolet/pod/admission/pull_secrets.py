"""Which Secrets a pod may tell the registries of its images. Pure.

Comes in: State, what `manifests` says of the pod's imagePullSecrets. Goes out: `pod.PullSecretsChanged`, and what a
pull is given. Next: `record`, `plan`, `outstanding`, `telling`. Source: kubelet_pods.go (getPullSecretsForPod).
What the Secrets hold lies in the state folder; here there are digests only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from chronolet.pod import wanted
from chronolet.pod.state import State, Successor
from chronolet_schemas import manifests, pod
from chronolet_schemas.envelope import Event


def with_spec(state: State, key: str, uid: str, digests: Mapping[str, str]) -> Sequence[Event]:
    """Those that come with an accepted spec, if they are other ones than before. `key` is the pod's."""
    before = state.pull_secrets if uid == state.uid else {}
    return (pod.PullSecretsChanged(pod=key, uid=uid, pull_secrets=dict(digests)),) if digests != before else ()


def changed(state: State, message: manifests.PullSecretsChanged) -> Sequence[Event]:
    """There are others now: for the pod that lives, or for the one that awaits its end."""
    if message.uid == state.uid:
        return with_spec(state, state.pod, state.uid, message.pull_secrets)
    following = state.successor
    if following is None or message.uid != following.uid:
        return ()
    return (awaits(state, replace(following, pull_secrets=message.pull_secrets)),)


def awaits(state: State, following: Successor) -> Event:
    """That one begins when this one has ended."""
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
    """What a pull is given, in the order in which the spec names them."""
    digests = state.pull_secrets
    return tuple(wanted.PullSecret(name=name, digest=digests[name]) for name in _names(state) if name in digests)


def missing(state: State) -> Sequence[str]:
    """The names of those that there are not."""
    return tuple(name for name in _names(state) if name not in state.pull_secrets)


def _names(state: State) -> Sequence[str]:
    return tuple(dict.fromkeys(one.name for one in state.manifest.spec.image_pull_secrets if one.name))
