"""Cases of pleg.json, by pleg's decider and the pure helpers that it calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chronolet.pleg import signals, transitions, wanted
from chronolet.pleg.decider import DECIDER
from chronolet.pleg.state import State
from chronolet_schemas import pleg
from tests.conformance.outcome import Case, differences

_WORDS = {pleg.ContainerStarted: "started", pleg.ContainerDied: "died", pleg.ContainerRemoved: "removed"}
"""What others act on; that a state cannot be told (`ContainerChanged`) is for pleg's own table."""


def _state_transition(case: Case) -> Iterable[str]:
    old, new = case["given"]["old_state"], case["given"]["new_state"]
    state = _told(DECIDER.initial, old)
    sent = [_WORDS[type(event)] for event in DECIDER.decide(state, _listed(new), 0) if type(event) in _WORDS]
    return differences(case["expect"], {"computed_events": list(transitions.computed(old, new)), "sent_events": sent})


def _told(state: State, seen: str) -> State:
    for event in DECIDER.decide(state, _listed(seen), 0):
        state = DECIDER.evolve(state, event) or DECIDER.initial
    return state


def _listed(state: Any) -> signals.Relisted:
    """A listing with one container, or without it: then the runtime says that it is gone."""
    found: Any = "removed" if state == "absent" else state
    seen = signals.Seen(pod="default/web", uid="u1", container="app", attempt=0, id="k1", state=found)
    return signals.Relisted(began_at=0, count=1, seen=(seen,))


_DEFAULTS = {
    "relist_period_seconds": wanted.Relist(subject="relist", intent="relist").period_seconds,
}


def _default_value(case: Case) -> Iterable[str]:
    option = case["given"]["option"]
    if option not in _DEFAULTS:
        raise NotImplementedError(f"nothing implements the option {option} yet")
    return differences(case["expect"], {"value": _DEFAULTS[option]})


KINDS = {
    "state_transition": _state_transition,
    "default_value": _default_value,
}
