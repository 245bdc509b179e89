"""Decide what a waiting claim does next: it keeps waiting, asks its plugin, gets devices, or is granted or refused.
Pure.

Input: Context, a waiting claim. Output: the events that follow; none if it keeps waiting for the same reason. Next:
`lifecycle`. `allocation` picks the devices or names the problem; this module decides whether a problem refuses the
claim or only delays it. Source: pkg/kubelet/cm/devicemanager/manager.go (allocateContainerResources).

The kubelet admits one pod at a time. Here pods are admitted concurrently, so a claim that is short of devices waits for
other allocations of its resource to finish, since those may return devices. The containers of one pod are served in
order, because init containers leave their devices to the next container.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chronolet.devices.claims.allocation import Chosen, Problem, Question, Request, problem_of, selection
from chronolet.devices.claims.events import chosen, pending, ref, refused, request
from chronolet.devices.claims.stock import stock_for
from chronolet.devices.context import Context
from chronolet.devices.state import Claim, ClaimPhase, Resource, State
from chronolet_schemas import devices

WAITED_FOR = frozenset(("unregistered_resource", "no_healthy_devices", "recorded_devices_unhealthy"))
"""Problems that a plugin's registration or a device's recovery can end. A shortage of devices is not one of them: it
ends when a pod ends.
"""


def advance(context: Context, claim: Claim) -> Sequence[devices.ClaimEvent]:
    """Return the events that follow for a waiting claim."""
    if claim.retry_at > context.now:
        return ()
    if _waits_for_earlier(context.state, claim):
        return _wait(context, claim, claim.resource, "in_turn", "waiting for earlier containers of the pod")
    for resource in sorted(claim.wants):
        events = _advance_resource(context, claim, resource)
        if events is not None:
            return events
    return (devices.DevicesAllocated(**ref(claim), earlier=claim.held),)


def _waits_for_earlier(state: State, claim: Claim) -> bool:
    """Whether an earlier container of the pod has not been granted its devices yet."""
    for other in state.of_pod(claim.uid):
        if other.container == claim.container:
            return False
        if other.phase != "granted":
            return True
    return False


def _advance_resource(context: Context, claim: Claim, resource: str) -> Sequence[devices.ClaimEvent] | None:
    """Return the events that follow for one resource; None if nothing is left to do for it."""
    recorded = claim.recorded(resource)
    if recorded is None and not context.policy.wait_for_resources and not context.state.known(resource):
        return None  # as in the kubelet: a resource that no plugin has ever offered is not a device resource
    problem = _problem(context, claim, resource)
    if problem is not None:
        return _refuse_or_wait(context, claim, resource, problem)
    if resource in claim.held or not claim.wants[resource]:
        return None
    return _ask_plugin(context, claim, resource)


def _problem(context: Context, claim: Claim, resource: str) -> Problem | None:
    checked = Request(
        uid=claim.uid,
        container=claim.container,
        resource=resource,
        requested=claim.wants[resource],
        recorded=claim.recorded(resource),
        running=resource in claim.adopted,
    )
    return problem_of(checked, context.healthy(resource))


def _ask_plugin(context: Context, claim: Claim, name: str) -> Sequence[devices.ClaimEvent]:
    """Return the events of the claim's next step: a choice of devices, a call to its plugin, or a wait for it."""
    resource = context.state.resources.get(name)
    if resource is None or not resource.has_plugin:
        return _wait(context, claim, name, "plugin_away", f"waiting for the device plugin of {name}")
    if resource.options is None:
        return _wait(context, claim, name, "options_unknown", f"waiting for the options of the device plugin of {name}")
    if name in claim.adopted:
        return (chosen(context, claim, name, claim.adopted[name]),)
    if _in_progress(context.state, claim, name, "preferring"):
        return _wait_in_turn(context, claim, name)
    return _choose(context, claim, name, resource)


def choose_preferred(
    context: Context, claim: Claim, resource: Resource, preferred: Iterable[str]
) -> Sequence[devices.ClaimEvent]:
    """Choose devices by the plugin's preference, considering only devices that are healthy now.

    If the plugin has re-registered and has not listed any devices yet, the claim waits as if the plugin had never been
    asked.
    """
    problem = _problem(context, claim, claim.resource)
    if problem is not None:
        return _refuse_or_wait(context, claim, claim.resource, problem)
    return _choose(context, claim, claim.resource, resource, preferred)


def _choose(
    context: Context, claim: Claim, name: str, resource: Resource, preferred: Iterable[str] | None = None
) -> Sequence[devices.ClaimEvent]:
    """Choose devices for the claim. If `preferred` is None and the plugin offers GetPreferredAllocation, ask the plugin
    first.
    """
    offers = resource.options is not None and resource.options.preferred_allocation
    stock = stock_for(context, claim, name)
    selected = selection(name, claim.wants[name], stock, offers=offers, preferred=preferred)
    match selected:
        case Chosen():
            return (chosen(context, claim, name, tuple(selected.devices)),)
        case Question():
            return (
                devices.PreferenceAsked(
                    **request(context, claim),
                    resource=name,
                    must_include=tuple(selected.must_include),
                    size=selected.size,
                    near=tuple(sorted(stock.affinity or ())) if selected.aligned else (),
                ),
            )
        case _:
            return _refuse_or_wait(context, claim, name, selected)


def _refuse_or_wait(context: Context, claim: Claim, resource: str, problem: Problem) -> Sequence[devices.ClaimEvent]:
    """Refuse the claim, or keep it waiting."""
    if problem.error == "insufficient_devices" and _in_progress(context.state, claim, resource, "allocating"):
        return _wait_in_turn(context, claim, resource)
    if context.policy.wait_for_resources and problem.error in WAITED_FOR:
        return _wait(context, claim, resource, problem.error, _reason_to_wait(claim, resource, problem))
    return (refused(claim, resource, problem),)


def _reason_to_wait(claim: Claim, resource: str, problem: Problem) -> str:
    match problem.error:
        case "unregistered_resource":
            return f"waiting for a device plugin that registers {resource}"
        case "no_healthy_devices":
            return f"waiting for a healthy device of {resource}"
        case _:
            unhealthy = ", ".join(claim.recorded(resource) or ())
            return f"waiting for its devices of {resource} to be healthy again: {unhealthy}"


def _in_progress(state: State, claim: Claim, resource: str, phase: ClaimPhase) -> bool:
    """Whether another claim for the resource is in this phase."""
    others = (state.claims[key] for key in state.open if key != claim.id)
    return any(other.phase == phase and other.resource == resource for other in others)


def _wait_in_turn(context: Context, claim: Claim, resource: str) -> Sequence[devices.ClaimEvent]:
    return _wait(context, claim, resource, "in_turn", f"waiting for other allocations of {resource} to finish")


def _wait(context: Context, claim: Claim, resource: str, reason: str, message: str) -> Sequence[devices.ClaimEvent]:
    """Keep the claim waiting; return an event only if the reason has changed."""
    known = context.state.claims.get(claim.id)
    news = (resource, reason, message, 0, "waiting")
    if known is not None and (known.resource, known.reason, known.message, known.retry_at, known.phase) == news:
        return ()
    return (pending(context, claim, resource, reason, message),)
