"""Fold the events of the `devices` kind into State. Validates nothing and cannot fail.

Input: State, an event of this kind. Output: the next State. Next: `decider`, history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chronolet.devices.claims.evolve import CLAIM_EVENTS
from chronolet.devices.plugins.evolve import PLUGIN_EVENTS
from chronolet.devices.state import State
from chronolet_schemas.envelope import Event

_CHANGES: Mapping[type[Event], Callable[[State, Any], State]] = {**CLAIM_EVENTS, **PLUGIN_EVENTS}


def evolve(state: State, event: Event) -> State:
    """Return the state after one event; events of other kinds change nothing."""
    change = _CHANGES.get(type(event))  # a table is faster than match, and this runs for every log entry
    return state if change is None else change(state, event)
