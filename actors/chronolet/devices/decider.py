"""Decide which container gets which device. Pure.

Input: plugin reports (`signals`), pods' requests and releases (`pod`), Due. Output: events of `devices`. Next: `pod`,
which starts containers once their devices are granted; PodResources and `get devices` read the state. Source:
pkg/kubelet/cm/devicemanager/manager.go.

This module only dispatches. `plugins.lifecycle` documents the phases of a resource and its plugin, `claims.lifecycle`
those of a container's claim. A decision has two halves: first the facts that follow from the message; then, if
these change the state or the message is Due, repeated passes over all waiting claims, until a pass yields no event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from chronolet.devices import signals
from chronolet.devices.claims import lifecycle as claims
from chronolet.devices.context import Context, Policy
from chronolet.devices.evolve import evolve
from chronolet.devices.outstanding import outstanding
from chronolet.devices.plugins import lifecycle as plugins
from chronolet.devices.state import State
from chronolet.kernel.decider import Decider, Due, EffectFailed
from chronolet_schemas.envelope import Event

DevicesMessage = plugins.PluginMessage | claims.ClaimMessage | EffectFailed | Due
"""Every message that the kind handles."""


def decider(policy: Policy) -> Decider[State]:
    """Build the decider for a policy. A later change of policy does not revise earlier decisions."""

    def decide(state: State, message: DevicesMessage, now: int) -> Sequence[Event]:
        """Return the events that follow from one message at `now`."""
        events = tuple(_facts(Context(state, policy, now), message))
        after = state
        for event in events:
            after = evolve(after, event)
        if after is state and not isinstance(message, Due):
            return events
        return (*events, *claims.reconsidered(Context(after, policy, now)))

    return Decider(initial=State(), decide=decide, evolve=evolve, due=due, outstanding=outstanding)


def _facts(context: Context, message: DevicesMessage) -> Iterable[Event]:
    """Return the events that follow directly from the message: the first half of a decision."""
    match message:
        case EffectFailed():
            return _facts(context, signals.from_failure(message))
        case Due():
            return plugins.overdue(context)
        case (
            signals.RegistryOpened()
            | signals.PluginRegistering()
            | signals.PluginLeft()
            | signals.OptionsAnswered()
            | signals.DevicesListing()
            | signals.EndpointStopped()
        ):
            return plugins.decide(context, message)
        case _:
            return claims.decide(context, message)


def due(state: State) -> int | None:
    """Return when the next resource expires, the next silent plugin is reported, or the next claim is retried."""
    return min(chain(plugins.due(state), claims.due(state)), default=None)


DECIDER = decider(Policy())
"""The decider of a node with default settings."""
