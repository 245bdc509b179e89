"""The probe of a pod that began latest, and why. Pure.

Comes in: the raw results of the node's probes, what the log says of delays. Goes out: one sentence, empty if none was
late. Next: `start_trace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chronolet.history.start_culprit import Culprit, seconds
from chronolet_schemas.prober import ProbeDelayed, RawResult

LATE_MILLISECONDS = 1000.0
"""A probe that began so much after its time is worth naming."""
STALL_SHARE = 0.5
"""From this part of its delay on, in which the agent did not run, that is why a probe was late."""

ROUNDED_MILLISECONDS = 1.0
"""The log's figures are whole numbers, and so may exceed a result's by less than this."""


class _Probed(NamedTuple):
    """One probe that was made: whose, when, for how long, how late. In milliseconds."""

    uid: str
    name: str
    at: float
    took: float
    late: float
    stalled: float


def latest(
    name: str, uid: str, since: int, results: Iterable[RawResult], delays: Sequence[ProbeDelayed]
) -> Culprit | None:
    """Of the pod `name` (namespace/name) of that uid, since that time; None if none was late."""
    made = [_probed(one) for one in results]
    late = [one for one in made if one.uid == uid and one.at >= since and one.late >= LATE_MILLISECONDS]
    worst = max(late, key=lambda one: one.late, default=None)
    told = max(delays, key=lambda one: one.late_milliseconds, default=None)
    if told is not None and (worst is None or told.late_milliseconds > worst.late + ROUNDED_MILLISECONDS):
        late_by, who = float(told.late_milliseconds), _who(told.probe, told.container)
        because = _stall(told.agent_late_milliseconds, late_by) or ": other probes were at work"
    elif worst is not None:
        late_by, who = worst.late, worst.name.partition(": ")[2]
        because = _because(worst, made)
    else:
        return None
    return Culprit(f"{name}: {who} began {seconds(late_by)} late{because}", late_by)


def _probed(one: RawResult) -> _Probed:
    return _Probed(
        uid=one.uid,
        name=f"{one.pod}: {_who(one.probe, one.container)}",
        at=_number(one.at),
        took=_number(one.milliseconds),
        late=_number(one.late_milliseconds),
        stalled=_number(one.agent_late_milliseconds),
    )


def _who(probe: str, container: str) -> str:
    return f"the {probe.lower()} probe of container {container}"


def _stall(stalled: float, late: float) -> str:
    return f": agent or machine stood still for {seconds(stalled)} meanwhile" if stalled >= STALL_SHARE * late else ""


def _because(worst: _Probed, made: Sequence[_Probed]) -> str:
    if stall := _stall(worst.stalled, worst.late):
        return stall
    beside = [one for one in made if one.at < worst.at and one.at + one.took > worst.at - worst.late]
    others = [one for one in beside if (one.uid, one.name) != (worst.uid, worst.name)]
    if not others:
        return ""
    longest = max(others, key=lambda one: one.took)
    were = "other probe was" if len(others) == 1 else "other probes were"
    return f": {len(others)} {were} at work meanwhile, {longest.name} for {seconds(longest.took)}"


def _number(text: str) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
