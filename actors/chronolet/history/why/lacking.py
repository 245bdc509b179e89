"""Names the evidence that would have settled what the log does not show, and finds gaps that may hide a cause. Pure.

Input: a cause, or the causes of the end of a run. Output: lines, none if the cause is certain; `LogGap`. Next:
`endings`, `answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause, where
from chronolet.history.why.records import Life, PodHistory, Run
from chronolet.history.why.wording import named
from chronolet_schemas import pleg
from chronolet_schemas.envelope import START, Position

_EVENTS = "Docker's own notices of that time (docker events), which the log does not have"
_GAP = "the missing entries of the log"


def settled_by(cause: Cause) -> Sequence[str]:
    """Return the evidence that the log lacks about this cause; nothing if it is certain."""
    found = _LACKING.get(type(cause))
    return found(cause) if found else ()


def names_a_gap(cause: Cause) -> bool:
    """Return whether a cause says itself that entries of the log may be missing."""
    return isinstance(cause, causes.LogGap | causes.EndNotRecorded) or not getattr(cause, "others", True)


def gap_in(history: PodHistory, life: Life, run: Run, found: Sequence[Cause]) -> Sequence[causes.LogGap]:
    """Return that the log lacks entries about a run, which may show another cause than those that were found; nothing
    if one of these says so itself.

    What was found out after the end counts, too, up to the next start.
    """
    if any(map(names_a_gap, found)):
        return ()
    following = next((one.started.position for one in life.runs_of(run.container) if one.attempt > run.attempt), None)
    gap = history.gap(_since(history, run), following)
    if gap is None and not run.start_missing:
        return ()
    return (causes.LogGap(**where(gap or run.started)),)


def _since(history: PodHistory, run: Run) -> Position:
    """Return the start of a run. If Docker was followed anew after it, the last time before it: a boot of the machine
    is seen only by the difference, and may be in a gap between them.
    """
    started = run.started.position
    followed = [fact.position for fact, _ in history.node_events(pleg.StreamFollowed)]
    if not any(started < one for one in followed):
        return started
    return max((one for one in followed if one < started), default=START)


def _signal_sender(one: causes.Unexplained) -> Sequence[str]:
    audit = f"an audit of signals on the host (auditctl -S kill), which names the sender of {named(one.signal)}"
    oom = ("the kernel's log of that time (journalctl -k), which names each OOM kill",) if one.oom_at else ()
    return (audit, *oom, *(() if one.not_docker else (_EVENTS,)), *(() if one.others else (_GAP,)))


def _exit_evidence(one: causes.ExitedByItself) -> Sequence[str]:
    crash = one.exit_code - causes.EXIT_BY_SIGNAL in causes.CRASHES
    core = ("the kernel's log of that time, or a core dump, which show a crash",) if crash else ()
    return (*core, *(() if one.not_docker else (_EVENTS,)), *(() if one.others else (_GAP,)))


def _client(one: causes.OtherSignal) -> Sequence[str]:
    client = "an audit of Docker's socket, or its debug log, which name the client"
    own = () if one.certain else ("the program's own log, which may show whether it exited because of the signal",)
    return (client, *own, *(() if one.others else (_GAP,)))


def _early_killer(one: causes.KilledEarly) -> Sequence[str]:
    if one.docker:
        return ("an audit of Docker's socket, or its debug log, which name the client",)
    return () if one.oom else ("the kernel's log, and an audit of signals on the host (auditctl -S kill)", _EVENTS)


_LACKING: Mapping[type[Cause], Callable[[Any], Sequence[str]]] = {
    causes.Unexplained: _signal_sender,
    causes.ExitedByItself: _exit_evidence,
    causes.KilledEarly: _early_killer,
    causes.EndNotRecorded: lambda _: (_GAP,),
    causes.LogGap: lambda _: (_GAP,),
    causes.Rebooted: lambda one: () if one.near else ("the times of the machine's boots (journalctl --list-boots)",),
    causes.SandboxDied: lambda one: () if one.others else (_GAP,),
    causes.Gone: lambda _: (_EVENTS,),
    causes.OtherSignal: _client,
    causes.EngineDown: lambda one: (
        ("the logs of dockerd and of the kernel of that time",) if not one.whole_pod else ("the log of dockerd",)
    ),
}
