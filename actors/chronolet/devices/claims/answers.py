"""Handle plugins' answers about one container's devices: to GetPreferredAllocation and to Allocate. Pure.

Input: Context, an answer. Output: the events that follow; none if the call is no longer outstanding. Next: `lifecycle`.
Source: pkg/kubelet/cm/devicemanager/manager.go (allocateContainerResources, callGetPreferredAllocationIfAvailable).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from chronolet.devices import signals
from chronolet.devices.claims.allocation import Problem
from chronolet.devices.claims.events import pending, ref, refused
from chronolet.devices.claims.questions import questioned
from chronolet.devices.claims.waiting import choose_preferred
from chronolet.devices.context import Context
from chronolet.devices.state import Claim
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event

RETRY_MILLISECONDS = 10_000
"""Delay before retrying a plugin that could not be reached although its stream has not ended."""

EMPTY_RESPONSE = (
    "no containers return in allocation response &AllocateResponse{ContainerResponses:[]*ContainerAllocateResponse{},}"
)
"""The kubelet's text for a response without containers."""

PluginReply = signals.PreferenceAnswered | signals.AllocateAnswered | signals.AllocateRefused


def answered(context: Context, message: PluginReply) -> Sequence[Event]:
    """Return the events that follow from an answer."""
    claim = questioned(context.state, message)
    if claim is None:
        return ()
    match message:
        case signals.AllocateAnswered():
            return _allocated(context, claim, message)
        case signals.AllocateRefused():
            return _failed(context, claim, message.error, away=message.away)
        case _:
            return _preferred(context, claim, message)


def _preferred(context: Context, claim: Claim, message: signals.PreferenceAnswered) -> Sequence[Event]:
    if message.error:
        error = f"device plugin GetPreferredAllocation rpc failed with err: {message.error}"
        return _failed(context, claim, error, away=message.away)
    resource = context.state.resources.get(claim.resource)
    if resource is None or not resource.has_plugin:
        return _failed(context, claim, "its plugin stopped", away=True)
    return choose_preferred(context, claim, resource, message.devices)


def _allocated(context: Context, claim: Claim, message: signals.AllocateAnswered) -> Sequence[Event]:
    count = len(message.answers)
    if not count:
        return _failed(context, claim, EMPTY_RESPONSE, away=False)
    resource = context.state.resources.get(claim.resource)
    if resource is None or resource.options is None:
        # The plugin was replaced or is awaited, so it is not yet known whether it requires PreStartContainer.
        unknown = f"waiting for the options of the device plugin of {claim.resource}"
        return (pending(context, claim, claim.resource, "options_unknown", unknown),)
    return (
        *((_trimmed(context, claim, count),) if count > 1 else ()),
        devices.DevicesAllocated(
            **ref(claim),
            resource=claim.resource,
            allocation=devices.Allocation(
                devices=claim.chosen,
                answer=message.answers[0],
                pre_start=resource.options.pre_start_required,
            ),
            earlier=claim.held,
            complete=not _is_incomplete(context, claim, {*claim.held, claim.resource}),
            milliseconds=message.milliseconds,
        ),
    )


def _trimmed(context: Context, claim: Claim, count: int) -> Event:
    """Report an allocation response for several containers. Like the kubelet, use only the first container's part."""
    return context.node_event(
        "DeviceAllocationTrimmed",
        f"Device plugin of {claim.resource} answered Allocate for {count} containers, expected 1: "
        f"the first response is used for container {claim.container} of {claim.pod}",
    )


def _is_incomplete(context: Context, claim: Claim, held: Collection[str]) -> bool:
    """Whether the claim still lacks a resource. If the policy is not to wait for resources, those that no plugin offers
    do not count.
    """
    waits = context.policy.wait_for_resources
    missing = (name for name, count in claim.wants.items() if count and name not in held)
    return any(waits or context.state.known(name) for name in missing)


def _failed(context: Context, claim: Claim, error: str, *, away: bool) -> Sequence[Event]:
    """Refuse the claim, or retry it after `RETRY_MILLISECONDS`, or sooner if the plugin registers again.

    It is retried if the plugin was unavailable (`away`) and the policy is to wait for resources, or if the container is
    already running with its devices.
    """
    resource = claim.resource
    if resource in claim.adopted or (away and context.policy.wait_for_resources):
        retry_at = context.now + RETRY_MILLISECONDS
        message = f"waiting for the device plugin of {resource}: {error}"
        return (pending(context, claim, resource, "plugin_away", message, retry_at=retry_at),)
    return (refused(claim, resource, Problem("plugin_error", error)),)
