"""Derives facts from the sources' requests for a pod. `plan` decides how the pod reacts to them.

Input: State, an event of `manifests`, now. Output: events of the pod; none if the request is outdated. Next: `decider`.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet.pod.admission import acceptance, pull_secrets
from chronolet.pod.planning import probing
from chronolet.pod.planning.termination import MINIMUM_GRACE_SECONDS, stop_requested
from chronolet.pod.state import State, Successor, definitions
from chronolet_schemas import manifests, pod
from chronolet_schemas.envelope import Event

_NOTHING: tuple[Event, ...] = ()


def applied(state: State, message: manifests.PodApplied, now: int) -> Sequence[Event]:
    """Handle a source's request for a pod: its life begins, its spec changes, or it waits until its predecessor has
    ended.
    """
    if not state.uid or (message.uid == state.uid and state.termination is None):
        if message.uid == state.uid and message.digest == state.digest:
            return _NOTHING
        accepted = acceptance.accepted(
            uid=message.uid, source=message.source, digest=message.digest, manifest=message.manifest, now=now
        )
        names = frozenset(one.name for _, one in definitions(message.manifest))
        return (
            *probing.withdrawals(state, names),
            *accepted,
            *pull_secrets.with_spec(state, message.pod, message.uid, message.pull_secrets),
        )
    following = Successor(
        uid=message.uid,
        source=message.source,
        digest=message.digest,
        manifest=message.manifest,
        pull_secrets=message.pull_secrets,
    )
    return (pull_secrets.awaits(state, following), *_terminate(state, "Replaced", None, now))


def withdrawn(state: State, message: manifests.PodWithdrawn, now: int) -> Sequence[Event]:
    """Handle a source's withdrawal of a pod: of the current one, or of the successor that waits until the current one
    has ended.
    """
    found: list[Event] = []
    if state.successor is not None and message.uid == state.successor.uid:
        found.append(pod.SuccessorAwaits(pod=state.pod, uid=state.uid, successor=None))
    if message.uid == state.uid:
        found += _terminate(state, "Deleted", message.grace_period_seconds, now)
    return found


def _terminate(state: State, reason: pod.EndReason, grace: int | None, now: int) -> Sequence[Event]:
    """Begin the termination, or shorten it: containers that are already being stopped then get the earlier deadline
    too.
    """
    requested = state.manifest.spec.termination_grace_period_seconds if grace is None else grace
    seconds = max(requested, MINIMUM_GRACE_SECONDS)
    deadline = now + seconds * 1000
    resumed = state.termination is not None and state.termination.resumed
    if state.termination is not None and deadline >= state.termination.deadline:
        return _NOTHING
    late = (one for one in state.containers if one.phase == "stopping" and one.stop and one.stop.deadline > deadline)
    return (
        pod.TerminationRequested(
            pod=state.pod,
            uid=state.uid,
            reason=reason,
            grace_period_seconds=seconds,
            deadline=deadline,
            resumed=resumed,
        ),
        *(stop_requested(state, one, reason, seconds, deadline) for one in late),
    )
