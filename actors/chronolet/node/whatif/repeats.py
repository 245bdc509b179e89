"""The outcomes of probes that the log lacks because they only repeated earlier ones. Pure.

Input: a probe's states in both runs, or in the record. Output: outcomes with their times. Next: `change`, `pods`.

Once a streak has reached its threshold, the worker and the decider drop further outcomes of the same kind, but never
the first one of another kind. So in between, the probe returned the same outcome once in each period: how often is an
assumption, as a probe may begin late.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from chronolet.prober.decider import DECIDER
from chronolet.prober.signals import ProbeOutcome
from chronolet.prober.state import State
from chronolet_schemas import prober
from chronolet_schemas.pleg import ProbeKillReleased as Released


def threshold(state: State) -> int:
    """Return the threshold of the current streak."""
    definition = state.definition
    return definition.success_threshold if state.last == "success" else definition.failure_threshold


def left_out(state: State, since: int, until: int, *, ended: bool = False) -> Iterator[tuple[int, ProbeOutcome]]:
    """Yield the outcomes between two times that a record with this state leaves out. Without `ended`, there is a
    recorded outcome at `until` or soon after it, of which none is left out.
    """
    complete = state.last and state.consecutive >= threshold(state)
    if not complete or not state.running or state.held or state.errored or state.period_milliseconds <= 0:
        return
    at = since + state.period_milliseconds
    last = until if ended else until - state.period_milliseconds // 2 - 1
    while at <= last:
        yield at, _again(state, at)
        at += state.period_milliseconds


def repeats(
    recorded: State, changed: State, until: int, *, ended: bool
) -> Iterator[tuple[int, ProbeOutcome | Released | None]]:
    """Yield those that the changed run needs to reach a threshold that it has not reached yet, or None if they are not
    known; and the release of a kill that only the changed run has asked for. `ended`: see `left_out`.
    """
    if changed.asked and not recorded.asked:
        yield changed.at, _released(changed)
        return
    worker = next(iter(DECIDER.outstanding(changed)), None)
    if worker is None or (recorded.id, recorded.started_at) != (changed.id, changed.started_at):
        return
    reached = changed.consecutive if changed.last == recorded.last else 0
    definition = changed.definition
    needed = definition.success_threshold if recorded.last == "success" else definition.failure_threshold
    if recorded.errored and recorded.last and recorded.consecutive >= threshold(recorded) and reached < needed:
        yield until, None
    since = max(changed.at, recorded.at)
    for number, (at, outcome) in enumerate(left_out(recorded, since, until, ended=ended), reached + 1):
        if number > needed:
            return
        yield at, replace(outcome, intent=worker.intent)


def _released(state: State) -> Released:
    return Released(
        pod=state.pod,
        uid=state.uid,
        container=state.container,
        probe=state.probe,
        id=state.id,
        started_at=state.started_at,
        at=state.at,
    )


def _again(state: State, at: int) -> ProbeOutcome:
    outcome: prober.Outcome = "success" if state.last == "success" else "failure"
    output = "" if outcome == "success" else state.output
    return ProbeOutcome(intent="", outcome=outcome, at=at, milliseconds=0, output=output, code=state.code)
