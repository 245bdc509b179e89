"""Traces a pod's last start: steps from the log, waits and engine calls from recent spans. Pure.

Input: the node's events, spans, results of its probes, the current time. Output: `Trace`. Next: `cli.history.trace`,
which prints it.

The culprit is what took longest: a step of the start, or the delay of a probe after it. A late probe is named together
with the slowest step, or alone if the start has finished and the probe's delay is longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from chronolet.history.late_probes import LATE_MILLISECONDS, latest
from chronolet.history.start_culprit import culprit, whole_milliseconds
from chronolet.history.start_steps import Start, Step, last_start
from chronolet.ports.spans import Span
from chronolet_schemas.envelope import Event
from chronolet_schemas.prober import RawResult
from chronolet_schemas.times import Stamp

UNHOSTED = "no agent of the node runs pods now: start it with `chronolet run`"


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The last start of a pod.

    `culprit` is one sentence. `ended` is 0 while the start is in progress; `milliseconds` is its duration so far.
    `gone_at` is when the pod ceased to exist, 0 if it still exists. `adopted`: the pod was already running when the log
    began.
    """

    pod: str
    began: int
    ended: int
    milliseconds: int
    steps: tuple[Step, ...]
    culprit: str
    gone_at: int = 0
    adopted: bool = False


def trace(
    name: str,
    events: Iterable[tuple[Stamp, str, Event]],
    spans: Sequence[Span],
    results: Iterable[RawResult],
    now: int,
    *,
    hosted: bool = True,
) -> Trace | None:
    """Trace the pod `name` (namespace/name); None if it is not in the log. `hosted`: whether an agent runs pods."""
    start = last_start(name, events, spans)
    if start is None:
        return None
    began = min((one.began for one in start.steps), default=start.since)
    whole = whole_milliseconds(start, now) if start.steps else 0
    return Trace(
        pod=name,
        began=began,
        ended=began + whole if start.steps and start.over else 0,
        milliseconds=whole,
        steps=start.steps,
        culprit=_sentence(name, start, began, results, now, hosted=hosted),
        gone_at=start.gone_at,
        adopted=start.adopted,
    )


def _sentence(name: str, start: Start, began: int, results: Iterable[RawResult], now: int, *, hosted: bool) -> str:
    """Combine the sentences about the start and about a late probe.

    If the start has finished and the probe's delay is longer, return only the sentence about the probe. If the start
    was refused, or if it is unfinished and no agent runs pods, return only the sentence about the start.
    """
    found = culprit(name, start, now)
    late = latest(name, start.uid, began, results, start.delays) if start.probed else None
    if not start.over and not hosted:
        return f"{found.text}; {UNHOSTED}"
    if late is None or start.refusal:
        return found.text
    if start.over and late.milliseconds > found.milliseconds:
        return late.text
    worth_naming = found.milliseconds >= LATE_MILLISECONDS
    return f"{found.text}; {late.text}" if worth_naming or not start.over else late.text
