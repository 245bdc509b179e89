"""Finds the counterparts of recorded signals and events in the changed run. Pure.

Input: a recorded decision, the effects and events of the changed run. Output: the decision without the change; the
signal as the changed run gets it; the events that only one run has. Next: `two_runs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from chronolet.history.recorded_decisions import Recorded
from chronolet.history.whatif.change import Change
from chronolet.kernel.kind import Effect
from chronolet_schemas.envelope import Event, Position, Signal


def addressed(change: Change, one: Recorded, signal: Any, effects: Sequence[Effect]) -> Signal | None:
    """Return an effect's signal with the intent that the effect has in the changed run; None if it is not among the
    changed run's effects. A signal of no effect that was outstanding is returned as it is.
    """
    found: Signal = signal
    intent = getattr(signal, "intent", "")
    if one.known is None or not intent:
        return found
    sender = next((each for each in one.kind.decider.outstanding(one.known) if each.intent == intent), None)
    if sender is None:
        return found
    same = next((each for each in effects if change.view(each) == change.view(sender)), None)
    if same is None:
        return None
    subject = {"subject": same.subject} if getattr(signal, "subject", "") else {}
    return msgspec.structs.replace(found, intent=same.intent, **subject)


def made_again(one: Recorded) -> tuple[Event, ...] | None:
    """Return the events of a recorded decision as this release decides without the change; None if it fails."""
    try:
        return one.again()
    except Exception:  # noqa: BLE001 - what another release has recorded may make a decider fail in any way
        return None


def is_whole(one: Recorded) -> bool:
    """Whether the range has all events of its last decision."""
    again, events = made_again(one) or (), tuple(one.events)
    return len(again) <= len(events) or again[: len(events)] != events


def matched(one: Recorded, events: Sequence[Event]) -> tuple[list[Event], dict[str, Event | None]]:
    """Return the events that only the changed run has; and by position, the counterparts of the recorded events that it
    has with other values, or None for those that it lacks.
    """
    rest, differing = list(events), list[tuple[Position, Event]]()
    for entry, event in zip(one.group.entries, one.events, strict=False):
        if event in rest:  # an equal event is the counterpart, even if another one has the same type and subject
            rest.remove(event)
        else:
            differing.append((entry.position, event))
    other = dict[str, Event | None]()
    for position, event in differing:
        same = next((each for each in rest if _is_same(each, event)), None)
        if same is not None:
            rest.remove(same)
        other[str(position)] = same
    return rest, other


def _is_same(one: Event, other: Event) -> bool:
    return type(one) is type(other) and one.subject() == other.subject()
