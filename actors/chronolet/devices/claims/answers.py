"""Handle plugins' answers about one container's devices. Pure.

Input: State, an answer. Output: the events that follow; none if the question is no longer open. Next: `decider`.
Source: pkg/kubelet/cm/devicemanager/manager.go (allocateContainerResources, callGetPreferredAllocationIfAvailable,
callPreStartContainerIfNeeded).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from chronolet.devices import signals
from chronolet.devices.claims import waiting as claims
from chronolet.devices.claims.allocation import Problem
from chronolet.devices.claims.waiting import ClaimContext
from chronolet.devices.outstanding import intent_of, start_intent_of, start_subject_of, subject_of
from chronolet.devices.plugins.lists import node_event
from chronolet.devices.state import Claim, State
from chronolet.kernel.decider import EffectFailed
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event

RETRY_MILLISECONDS = 10_000
"""Delay before retrying a plugin that could not be reached although it has not stopped."""

EMPTY_RESPONSE = (
    "no containers return in allocation response &AllocateResponse{ContainerResponses:[]*ContainerAllocateResponse{},}"
)
"""The kubelet's text for a response without containers."""

PluginAnswer = (
    signals.PreferenceAnswered | signals.AllocateAnswered | signals.AllocateRefused | signals.PreStartAnswered
)


def answered(context: ClaimContext, message: PluginAnswer) -> Sequence[Event]:
    """Return the events that follow from an answer."""
    if isinstance(message, signals.PreStartAnswered):
        return _pre_start(context, message)
    claim = _asking(context.state, message)
    if claim is None:
        return ()
    match message:
        case signals.AllocateAnswered():
            return _allocated(context, claim, message)
        case signals.AllocateRefused():
            return _failed(context, claim, message.error, away=message.away)
        case _:
            return _preferred(context, claim, message)


def _preferred(context: ClaimContext, claim: Claim, message: signals.PreferenceAnswered) -> Sequence[Event]:
    if message.error:
        error = f"device plugin GetPreferredAllocation rpc failed with err: {message.error}"
        return _failed(context, claim, error, away=message.away)
    resource = context.state.resources.get(claim.resource)
    if resource is None or not resource.has_plugin:
        return _failed(context, claim, "its plugin stopped", away=True)
    return claims.preference(context, claim, resource, message.devices)


def as_answer(message: EffectFailed) -> PluginAnswer | signals.OptionsAnswered:
    """Convert a worker's failure or time-out into the answer it stands for."""
    subject, intent, error = message.subject, message.intent, message.error
    if message.timed_out:
        error = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    match message.effect:
        case "Allocate":
            return signals.AllocateRefused(subject=subject, intent=intent, error=error)
        case "Prefer":
            return signals.PreferenceAnswered(subject=subject, intent=intent, error=error)
        case "PreStart":
            return signals.PreStartAnswered(subject=subject, intent=intent, error=error)
        case _:
            return signals.OptionsAnswered(subject=subject, intent=intent, error=error)


def _asking(state: State, message: signals.Answered) -> Claim | None:
    """The claim with the open question that this answers."""
    for key in state.open:
        claim = state.claims[key]
        if message.subject == subject_of(claim) and message.intent == intent_of(claim):
            return claim
    return None


def _allocated(context: ClaimContext, claim: Claim, message: signals.AllocateAnswered) -> Sequence[Event]:
    count = len(message.answers)
    if not count:
        return _failed(context, claim, EMPTY_RESPONSE, away=False)
    resource = context.state.resources.get(claim.resource)
    if resource is None or resource.options is None:
        # The plugin was replaced or is awaited: whether it requires PreStartContainer is not known yet.
        unknown = f"waiting for the options of the device plugin of {claim.resource}"
        return (claims.pending(context, claim, claim.resource, "options_unknown", unknown),)
    return (
        *((_trimmed(context, claim, count),) if count > 1 else ()),
        devices.DevicesAllocated(
            pod=claim.pod,
            uid=claim.uid,
            container=claim.container,
            resource=claim.resource,
            allocation=devices.Allocation(
                devices=claim.chosen,
                answer=message.answers[0],
                pre_start=resource.options.pre_start_required,
            ),
            earlier=claim.held,
            complete=not _wanting(context, claim, {*claim.held, claim.resource}),
            milliseconds=message.milliseconds,
        ),
    )


def _trimmed(context: ClaimContext, claim: Claim, count: int) -> Event:
    """Report an allocation response for several containers; like the kubelet, only the first is used."""
    return node_event(
        context.policy,
        "DeviceAllocationTrimmed",
        f"Device plugin of {claim.resource} answered Allocate for {count} containers, expected 1: "
        f"the first response is used for container {claim.container} of {claim.pod}",
    )


def _wanting(context: ClaimContext, claim: Claim, held: Collection[str]) -> bool:
    """Whether the claim still misses a resource. Depending on policy, resources that no plugin offers do not count."""
    waits = context.policy.wait_for_resources
    missing = (name for name, count in claim.wants.items() if count and name not in held)
    return any(waits or context.state.known(name) for name in missing)


def _failed(context: ClaimContext, claim: Claim, error: str, *, away: bool) -> Sequence[Event]:
    """Retry when the plugin is back, or refuse the claim. A container that already runs with its devices is never
    refused.
    """
    name = claim.resource
    if name in claim.adopted or (away and context.policy.wait_for_resources):
        retry_at = context.now + RETRY_MILLISECONDS
        message = f"waiting for the device plugin of {name}: {error}"
        return (claims.pending(context, claim, name, "plugin_away", message, retry_at=retry_at),)
    return (claims.refused(claim, name, Problem("plugin_error", error)),)


def _pre_start(context: ClaimContext, message: signals.PreStartAnswered) -> Sequence[Event]:
    for key in context.state.open:
        claim = context.state.claims[key]
        if claim.starting is None or message.intent != start_intent_of(claim):
            continue
        if message.subject == start_subject_of(claim):
            who = {"pod": claim.pod, "uid": claim.uid, "container": claim.container}
            if message.error:
                error = f"device plugin PreStartContainer rpc failed with err: {message.error}"
                return (devices.PreStartFailed(**who, attempt=claim.starting, message=error),)
            return (devices.PreStartDone(**who, attempt=claim.starting),)
    return ()
