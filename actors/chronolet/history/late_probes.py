"""Finds the most delayed probe of a pod, and the reason for the delay. Pure.

Input: raw results of the node's probes, the delays recorded in the log. Output: a `Culprit`, or None if no probe was
late. Next: `start_trace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chronolet.history.start_culprit import Culprit, seconds
from chronolet_schemas.prober import ProbeDelayed, RawResult

LATE_MILLISECONDS = 1000.0
"""The shortest delay that is reported."""
STALL_SHARE = 0.5
"""A stall of the agent is given as the reason if it makes up at least this share of the delay."""

ROUNDED_MILLISECONDS = 1.0
"""Delays in the log are rounded to whole milliseconds, so they may exceed those of raw results by less than this."""


class _Attempt(NamedTuple):
    """One probe attempt: the pod and the probe, when it began, how long it took, how late it was, and how much of that
    was a stall of the agent. Times are in milliseconds.
    """

    uid: str
    name: str
    at: float
    took: float
    late: float
    stalled: float


def latest(
    name: str, uid: str, since: int, results: Iterable[RawResult], delays: Sequence[ProbeDelayed]
) -> Culprit | None:
    """Return a sentence about the pod's most delayed probe since `since`; None if no probe was late.

    `name` is namespace/name; `delays` are those that the log has recorded for this start.
    """
    attempts = [_attempt(one) for one in results]
    late = [one for one in attempts if one.uid == uid and one.at >= since and one.late >= LATE_MILLISECONDS]
    worst = max(late, key=lambda one: one.late, default=None)
    logged = max(delays, key=lambda one: one.late_milliseconds, default=None)
    if logged is not None and (worst is None or logged.late_milliseconds > worst.late + ROUNDED_MILLISECONDS):
        late_by, probe = float(logged.late_milliseconds), _probe_words(logged.probe, logged.container)
        because = _stall(logged.agent_late_milliseconds, late_by) or ": other probes were running"
    elif worst is not None:
        late_by, probe = worst.late, worst.name.partition(": ")[2]
        because = _because(worst, attempts)
    else:
        return None
    return Culprit(f"{name}: {probe} began {seconds(late_by)} late{because}", late_by)


def _attempt(one: RawResult) -> _Attempt:
    return _Attempt(
        uid=one.uid,
        name=f"{one.pod}: {_probe_words(one.probe, one.container)}",
        at=_number(one.at),
        took=_number(one.milliseconds),
        late=_number(one.late_milliseconds),
        stalled=_number(one.agent_late_milliseconds),
    )


def _probe_words(probe: str, container: str) -> str:
    return f"the {probe.lower()} probe of container {container}"


def _stall(stalled: float, late: float) -> str:
    return f": agent or machine stalled for {seconds(stalled)}" if stalled >= STALL_SHARE * late else ""


def _because(worst: _Attempt, attempts: Sequence[_Attempt]) -> str:
    if stall := _stall(worst.stalled, worst.late):
        return stall
    concurrent = [one for one in attempts if one.at < worst.at and one.at + one.took > worst.at - worst.late]
    others = [one for one in concurrent if (one.uid, one.name) != (worst.uid, worst.name)]
    if not others:
        return ""
    longest = max(others, key=lambda one: one.took)
    were = "other probe was" if len(others) == 1 else "other probes were"
    return f": {len(others)} {were} running meanwhile, {longest.name} for {seconds(longest.took)}"


def _number(text: str) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
