"""Count and record refused registrations, so that a plugin that keeps retrying does not fill the log. Pure.

Input: Context, a refusal from `validation`. Output: RegistrationRefused, unless one was recorded recently; names of
counters. Next: `registration`; `registrar` counts all refusals under the same names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import get_args

from chronolet.devices import signals
from chronolet.devices.context import Context
from chronolet.devices.plugins.validation import Reason, Refusal, shortened
from chronolet.devices.state import RefusalCount
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event

REPEATED_AFTER_MILLISECONDS = 300_000
"""A repeated refusal is reported when the number of refusals has doubled, or this long after the last report."""

MAX_COUNTERS = 64
"""Maximum number of separate counters, one per reason and resource. All further refusals share one counter."""
_SHARED_COUNTER = ""


def refused(context: Context, message: signals.PluginRegistering, refusal: Refusal) -> Sequence[Event]:
    """Record a refusal, unless it repeats one that was reported recently; `registrar` counts every refusal."""
    counts = context.state.refused
    known = counts.get(counter_of(message.resource, refusal.reason, counts), RefusalCount(times=0, at=0))
    continues = 0 < known.times < message.times
    if continues and message.times < 2 * known.times and context.now < known.at + REPEATED_AFTER_MILLISECONDS:
        return ()
    event = devices.RegistrationRefused(
        resource=shortened(message.resource),
        endpoint=shortened(message.endpoint),
        version=shortened(" ".join(message.versions)),
        reason=refusal.reason,
        message=refusal.message,
        refused_at=context.now,
        times=message.times,
        calls=message.times - known.times if continues else message.times,
    )
    text = f"Device plugin at {event.endpoint!r}: {refusal.message}"
    return (event, context.node_event("DevicePluginRefused", text))


def counter_of(resource: str, reason: Reason, known: Collection[str]) -> str:
    """Return the name of the counter for a refusal; `known` are the counters that exist."""
    name = f"{reason} {shortened(resource)}"
    return name if name in known or len(known) < MAX_COUNTERS else _SHARED_COUNTER


def counters_of(resource: str) -> Sequence[str]:
    """Return the names of all separate counters that this resource may have, one per reason."""
    return [f"{reason} {resource}" for reason in get_args(Reason)]
