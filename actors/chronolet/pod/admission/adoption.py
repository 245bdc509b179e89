"""Adopts a running pod that the log does not know, based on the runtime's containers. Pure.

Input: `pod.AdoptPod`. Output: `pod.PodAdopted`, which `evolve.adoption` folds, and the events that block the pod or
resume its termination; a refusal if the pod is already in the log, unless the log has lost its end and knows less about
the pod than the runtime. Next: `plan`, which takes the steps that such a pod needs. Source: the kubelet's restart,
which finds its pods in the runtime (pkg/kubelet/kuberuntime/kuberuntime_manager.go, GetPodStatus). Back-offs are reset.

A container that is running as an older attempt, or under a name that is no longer in the spec, is a stray; `pleg`
reports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chronolet.pod.admission import acceptance
from chronolet.pod.admission.hashes import container_hashes, sandbox_hash
from chronolet.pod.state import SANDBOX, State, definitions
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from chronolet_schemas.pod import FoundContainer


class _Attempts(NamedTuple):
    """The attempts of one container that have run: the newest and, if it is running, the last dead one before it."""

    newest: FoundContainer
    before: FoundContainer | None


def adopted(state: State, command: pod.AdoptPod) -> Sequence[Event]:
    """Return the events that answer an AdoptPod."""
    if state.uid and not (command.end_lost and knows_less(state, command)):
        reason = f"{state.pod} is already in the log, with uid {state.uid}"
        return (pod.AdoptionRefused(pod=command.pod, uid=command.uid, reason=reason),)
    manifest, found = command.manifest, command.found
    sandbox = _attempts(found, SANDBOX)
    each = [one for _, named in definitions(manifest) if (one := _attempts(found, named.name)) is not None]
    return (
        pod.PodAdopted(
            pod=command.pod,
            uid=command.uid,
            source=command.source,
            digest=command.digest,
            manifest=manifest,
            accepted_at=command.accepted_at,
            sandbox_hash=sandbox_hash(manifest),
            container_hashes=container_hashes(manifest),
            host_ip=command.host_ip,
            sandbox=sandbox.newest if sandbox else None,
            containers=tuple(one.newest for one in each),
            before=tuple(one.before for one in each if one.before is not None),
        ),
        *acceptance.blocked(command.uid, manifest),
        *_resumed_termination(command),
    )


def knows_less(state: State, command: pod.AdoptPod) -> bool:
    """Whether the log, which has lost its end, is behind `command` in a way that the next start would not correct by
    itself: the pod has another uid or manifest, a later attempt has run, or a termination had begun.
    """
    if (state.uid, state.digest) != (command.uid, command.digest):
        return True
    if command.ending is not None and state.termination is None:
        return True
    return any(_is_later(state, one) for one in command.found if one.state != "created")


def _is_later(state: State, found: FoundContainer) -> bool:
    if found.container == SANDBOX:
        return found.attempt > state.sandbox.attempt
    one = state.container(found.container)
    if one is None:
        return False
    return found.attempt > (one.attempt if one.alive else one.next_attempt)


def _resumed_termination(command: pod.AdoptPod) -> Sequence[Event]:
    """Resume a termination that had already begun."""
    ending = command.ending
    if ending is None:
        return ()
    return (
        pod.TerminationRequested(
            pod=command.pod,
            uid=command.uid,
            reason=ending.reason,
            grace_period_seconds=ending.grace_period_seconds,
            deadline=ending.deadline,
            resumed=True,
        ),
    )


def _attempts(found: Iterable[FoundContainer], name: str) -> _Attempts | None:
    """Return the attempts of one container that have run; None if there are none. An attempt that was created but never
    started is ignored: the next start finds it by name.
    """
    ran = (one for one in found if one.container == name and one.state != "created")
    attempts = sorted(ran, key=lambda one: one.attempt, reverse=True)
    if not attempts:
        return None
    newest, *older = attempts
    before = next((one for one in older if one.state == "exited"), None) if newest.state == "running" else None
    return _Attempts(newest, before)
