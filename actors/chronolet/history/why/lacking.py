"""Names the evidence that would have settled what the log does not show. Pure.

Input: a cause. Output: lines; none if the cause is certain. Next: `answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause
from chronolet.history.why.wording import named

_EVENTS = "Docker's own notices of that time (docker events), which the log does not have"
_GAP = "the missing entries of the log"


def settled_by(cause: Cause) -> Sequence[str]:
    """Return the evidence that the log lacks about this cause; nothing if it is certain."""
    found = _LACKING.get(type(cause))
    return found(cause) if found else ()


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
    causes.Rebooted: lambda one: () if one.near else ("the times of the machine's boots (journalctl --list-boots)",),
    causes.SandboxDied: lambda one: () if one.others else (_GAP,),
    causes.Gone: lambda _: (_EVENTS,),
    causes.OtherSignal: _client,
    causes.EngineDown: lambda one: (
        ("the logs of dockerd and of the kernel of that time",) if not one.whole_pod else ("the log of dockerd",)
    ),
}
