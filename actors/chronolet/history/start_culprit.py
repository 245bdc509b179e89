"""Describes a pod's start in one sentence: which step took longest and why, or why the start is stuck. Pure.

Input: `Start`, the current time. Output: the sentence. Next: `start_trace`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from chronolet.history.start_steps import Start, Step
from chronolet.kernel.observer import Queue
from chronolet.ports.spans import PULL_TURN, TURN, Span

_PULL = "docker.pull"
"""The engine call that pulls an image. A finished pull is not named, because the note on the step describes its
duration better.
"""


class Culprit(msgspec.Struct, frozen=True):
    """A sentence about what delays a start, and the milliseconds that it has cost."""

    text: str
    milliseconds: float


def culprit(name: str, start: Start, now: int) -> Culprit:
    """Return what took longest while the pod `name` (namespace/name) started, or what blocks the start."""
    if start.next_at and not start.gone_at:
        waited = now - start.next_at
        return Culprit(f"{name} has waited {seconds(waited)} for its predecessor to end", waited)
    stuck = _stuck(start)
    if stuck:
        return Culprit(f"{name} has not started: {stuck}", 0)
    if not start.steps:
        return _without_steps(name, start, now)
    return _slowest(name, start, now)


def _stuck(start: Start) -> str:
    """Return why the start is stuck; empty if it is making progress, has finished, or the pod is ending."""
    if start.ending_at or start.refusal:
        return "" if start.ending_at else start.refusal
    if not start.lacking or any(not one.ended for one in start.steps):
        return ""
    last = {one.name: one for one in start.steps}
    failed = max((one for one in last.values() if one.failed), key=lambda one: one.ended, default=None)
    return f"{failed.name} failed: {failed.note}" if failed else ""


def _without_steps(name: str, start: Start, now: int) -> Culprit:
    since = now - start.since
    if start.ending_at:
        return Culprit(f"{name} began to terminate before the first step of its start", 0)
    if start.adopted:
        return Culprit(f"{name} already ran when this log began, {seconds(since)} ago; its start is not recorded", 0)
    return Culprit(f"{name}: no step of its start has begun for {seconds(since)}", since)


def _slowest(name: str, start: Start, now: int) -> Culprit:
    """Return what took longest: `default/web took 12.400 s to start, 11.800 s of it (95 %) getting image ...`."""
    whole = whole_milliseconds(start, now)
    groups: dict[str, list[Step]] = {}
    for one in (*start.steps, *_idle(start)):
        groups.setdefault(one.name, []).append(one)
    worst = max(groups.values(), key=lambda some: sum(one.milliseconds(now) for one in some))
    what, took, reason = _what(worst, now)
    times = f", {len(worst)} times" if len(worst) > 1 else ""
    if start.ending_at and start.lacking:
        how = f"began to terminate {seconds(whole)} after its start began"
    elif start.over:
        how = f"took {seconds(whole)} to start"
    else:
        how = f"has been starting for {seconds(whole)}"
    because = f": {reason}" if reason else ""
    return Culprit(f"{name} {how}, {seconds(took)} of it ({share(took, whole)}) {what}{times}{because}", took)


def _idle(start: Start) -> Sequence[Step]:
    """Return a step for the time since an unfinished start last made progress, if no other step is open."""
    if start.over or any(not one.ended for one in start.steps):
        return ()
    since = max(one.ended for one in start.steps)
    return (Step(name=f"without progress for container {', '.join(start.lacking)}", began=since),)


def whole_milliseconds(start: Start, now: int) -> int:
    """Return the time from the beginning of the first step to the end of the last step, or to `now` if the start is not
    over; at least 1.
    """
    began = min(one.began for one in start.steps)
    ended = max(one.ended for one in start.steps) if start.over else now
    return max(ended - began, 1)


def _what(steps: Sequence[Step], now: int) -> tuple[str, float, str]:
    """Return what took most of the time of these steps, which have the same name; how long it took; and why."""
    name, took = steps[0].name, float(sum(one.milliseconds(now) for one in steps))
    spans = [span for one in steps for span in one.spans]
    turns = [span for span in spans if span.what in (TURN, PULL_TURN)]
    waited = max(sum(span.took(now) for span in turns), sum(one.waited for one in steps))
    reason = next((one.note for one in reversed(steps) if one.note), "")
    if waited <= took / 2:
        return name, took, reason or _longest_call(spans, took, now)
    longest = max(turns, key=lambda one: one.took(now), default=None)
    return f"queued before {name}", waited, _queue_words(longest) or reason


def _queue_words(turn: Span | None) -> str:
    """Describe a wait in a queue: `1 of at most 1 start was running (default/first), and 2 more came before it`."""
    if turn is None:
        return ""
    if turn.queue is None:
        return "the engine was at its measured limit"
    return _queue(turn.queue, "pull" if turn.what == PULL_TURN else "start")


def _queue(queue: Queue, what: str) -> str:
    more = queue.at_work - len(queue.holders)
    holders = ", ".join((*queue.holders, *([f"{more} more"] if more else [])))
    were = "was" if queue.at_work == 1 else "were"
    allowed = f"{queue.allowed} {what}{'' if queue.allowed == 1 else 's'}"
    ahead = f", and {queue.ahead} more came before it" if queue.ahead else ""
    alone = "" if queue.at_work >= queue.allowed else " alone, as the first of a batch"
    return f"{queue.at_work} of at most {allowed} {were} running{alone} ({holders}){ahead}"


def _longest_call(spans: Sequence[Span], took: float, now: int) -> str:
    """Describe the engine call that took more than half of the time; empty if there is none, or for an ended pull."""
    longest = max(spans, key=lambda one: one.took(now), default=None)
    if longest is None or longest.took(now) <= took / 2 or (longest.over and longest.what == _PULL):
        return ""
    so_long = seconds(longest.took(now))
    if longest.over:
        return f"{longest.what} took {so_long}"
    return (
        f"its pull has been running for {so_long}"
        if longest.what == _PULL
        else f"{longest.what} has not answered for {so_long}"
    )


def share(part: float, whole: float) -> str:
    """Format a share: `95 %`."""
    return f"{min(round(100 * part / whole), 100)} %"


def seconds(milliseconds: float) -> str:
    """Format milliseconds as seconds: `12.400 s`."""
    return f"{milliseconds / 1000:.3f} s"
