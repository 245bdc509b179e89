"""Decide which container gets which device. Pure.

Input: plugin reports (`signals`), pods' requests and releases (`pod`), Due. Output: events of `devices`. Next: `pod`,
which starts containers once their devices are granted; PodResources and `get devices` read the state. Source:
pkg/kubelet/cm/devicemanager/manager.go.

A decision has two halves: first the facts that follow from the message, then repeated passes over all waiting claims
with the resulting state until nothing more follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import assert_never

from chronolet.devices import signals
from chronolet.devices.claims import answers, requests
from chronolet.devices.claims import waiting as claims
from chronolet.devices.claims.waiting import ClaimContext, Policy
from chronolet.devices.outstanding import outstanding
from chronolet.devices.plugins import lists as plugins
from chronolet.devices.plugins.evolve import evolve
from chronolet.devices.state import State
from chronolet.kernel.decider import Decider, Due, EffectFailed
from chronolet_schemas import devices, pod
from chronolet_schemas.envelope import Event

FromPods = pod.DevicesRequested | pod.DevicesReleased | pod.PreStartRequested | pod.PodEnded
Message = FromPods | signals.Message | EffectFailed | Due
"""Every message that devices handles."""


def decided(policy: Policy, state: State, message: Message, now: int) -> Sequence[Event]:
    """Return the events that follow from one message at `now`."""
    found: list[Event] = []
    context = ClaimContext(state, policy, now)
    after = _fold(state, _facts(context, message), found)
    if after is state and not isinstance(message, Due):
        return found
    context = ClaimContext(after, policy, now)
    while _advance_all(context, found):
        pass
    return found


def _advance_all(context: ClaimContext, found: list[Event]) -> bool:
    """Advance every waiting claim once; return whether any event followed."""
    before = len(found)
    for claim in tuple(claims.waiting(context.state)):
        context.state = _fold(context.state, claims.advance(context, claim), found)
    return len(found) > before


def _fold(state: State, events: Iterable[Event], found: list[Event]) -> State:
    for event in events:
        found.append(event)
        state = evolve(state, event)
    return state


def _facts(context: ClaimContext, message: Message) -> Iterable[Event]:
    match message:
        case pod.DevicesRequested() | pod.DevicesReleased() | pod.PreStartRequested() | pod.PodEnded():
            return _pod_events(context, message)
        case EffectFailed():
            return _answer_events(context, answers.as_answer(message))
        case signals.Answered():
            return _answer_events(context, message)
        case signals.PodsListed():
            return requests.compared(context.state, message)
        case Due():
            return (
                *plugins.removals(context.state, context.now),
                *plugins.silences(context.state, context.policy, context.now),
            )
        case _:
            return _plugin_events(context, message)


def _pod_events(context: ClaimContext, message: FromPods) -> Iterable[Event]:
    match message:
        case pod.DevicesRequested():
            return requests.requested(context, message)
        case pod.DevicesReleased():
            return requests.released(context.state, message.uid, message.containers, "Released")
        case pod.PreStartRequested():
            return requests.pre_start(context, message)
        case pod.PodEnded():
            return requests.released(context.state, message.uid, None, "PodEnded")
        case _:
            assert_never(message)


def _answer_events(context: ClaimContext, message: signals.OptionsAnswered | answers.PluginAnswer) -> Iterable[Event]:
    if isinstance(message, signals.OptionsAnswered):
        return plugins.options_received(context.state, message, context.policy)
    return answers.answered(context, message)


def _plugin_events(
    context: ClaimContext,
    message: signals.RegistryOpened
    | signals.PluginRegistering
    | signals.PluginLeft
    | signals.DevicesListing
    | signals.EndpointStopped,
) -> Iterable[Event]:
    match message:
        case signals.RegistryOpened():
            return (devices.RegistryOpened(opened_at=context.now),)
        case signals.PluginRegistering():
            return plugins.registering(context.state, message, context.policy, context.now)
        case signals.PluginLeft():
            return plugins.left(context.state, message, context.policy, context.now)
        case signals.DevicesListing():
            return plugins.listing(context.state, message, context.policy)
        case signals.EndpointStopped():
            return plugins.stopped(context.state, message, context.policy, context.now)
        case _:
            assert_never(message)


def due(state: State) -> int | None:
    """When the next resource expires, the next silent plugin is reported, or the next claim is retried."""
    plugged = (at(one) for one in state.resources.values() for at in (plugins.removed_at, plugins.silent_at))
    retries = (claim.retry_at for claim in claims.waiting(state) if claim.retry_at)
    return min(chain((at for at in plugged if at is not None), retries), default=None)


def decider(policy: Policy) -> Decider[State]:
    """Build the decider for a policy. A later change of policy does not revise earlier decisions."""

    def decide(state: State, message: Message, now: int) -> Sequence[Event]:
        return decided(policy, state, message, now)

    return Decider(initial=State(), decide=decide, evolve=evolve, due=due, outstanding=outstanding)


DECIDER = decider(Policy())
"""The decider of a node with default settings."""
