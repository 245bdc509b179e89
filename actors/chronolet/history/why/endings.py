"""Explains why a run of a container ended. Pure.

Input: a run, its life, the history of its pod. Output: causes, the root first, then `Exited`. Next: `answer`, which
adds what happened afterwards.

The evidence counts in this order:

    the start failed                               StartFailed
    the machine was booted again                   Rebooted
    chronolet stopped the container                the reason of the stop, Stopped
    Docker ended, and the whole pod with it        EngineDown
    a Docker client had Docker send a signal       OtherSignal
    the kernel killed the main process             OutOfMemory
    the runtime no longer has the container        Gone
    Docker was down when the run ended             EngineDown (or something else, which nothing observed)
    the sandbox died first                         SandboxDied
    an exit code of 128 or more                    Unexplained, or ExitedByItself for the signals of a crash
    anything else                                  ExitedByItself, after an OutOfMemory of another process
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chronolet.history.why import causes
from chronolet.history.why.causes import Cause, where
from chronolet.history.why.facts import Fact
from chronolet.history.why.lacking import gap_in
from chronolet.history.why.outages import engine_ended, outage_at, outages, sandbox_deaths, sandbox_died
from chronolet.history.why.records import Exit, Life, PodHistory, Run
from chronolet.history.why.stops import stop_of, stopped
from chronolet_schemas import container_gc, pleg, pod, prober

_STATUS_UNKNOWN = "ContainerStatusUnknown"
_HARMLESS = frozenset((1, causes.KILL, 10, 12, 18, 19, 20, 21, 22, 23, 28))
"""Signals that programs handle without exiting, such as SIGHUP, or that only halt them, such as SIGSTOP; and SIGKILL,
whose exit code is always the same."""
_NEAR_MILLISECONDS = 10_000
"""An OOM kill or a boot may be recorded this long before or after the end that it led to."""
_SOON_MILLISECONDS = 15_000
"""A program that exits this soon after a signal that asks for it has exited because of it."""
_BOOT_MILLISECONDS = 120_000
"""A run that ended this shortly before chronolet was there after a boot ended with the machine: Docker finds it dead
when it is started."""
_LATE_MILLISECONDS = 1_000
"""The shortest delay between an end and its record that is reported."""
_REMOVED_MILLISECONDS = 5_000
"""A container that Docker removes this soon after a kill from outside was removed with it, as by `docker rm -f`."""


def ending(history: PodHistory, life: Life, run: Run) -> tuple[Cause, ...]:
    """Return the causes of the end of a run that has ended; for a run whose end is not recorded, only that."""
    if run.exit is None:
        return (causes.EndNotRecorded(**where(run.started)),)
    found = next(filter(None, (one(history, life, run, run.exit) for one in _EXPLANATIONS)))
    milliseconds = run.exit.finished_at - run.exit.started_at if run.exit.finished_at else -1
    exited = causes.Exited(
        at=run.exit.finished_at or run.exit.fact.at,
        position=str(run.exit.fact.position),
        container=run.container,
        exit_code=run.exit.exit_code,
        milliseconds=milliseconds,
    )
    return (*found, exited, *_noticed_late(history, run, run.exit), *gap_in(history, life, run, found))


def death_of(run: Run) -> pleg.ContainerDied | None:
    """Return what Docker reported about the end of a run; None if that was not recorded.

    A later report is about a container that something started again.
    """
    deaths = run.of(pleg.ContainerDied)
    before = [one for one in deaths if run.exit is not None and one[0].position <= run.exit.fact.position]
    return next((event for _, event in (*before[-1:], *deaths)), None)


# -- explanations, in the order in which they are tried ----------------------------------------------------------------
def _start_failed(_history: PodHistory, _life: Life, _run: Run, exit_: Exit) -> Sequence[Cause]:
    if not exit_.start_failed:
        return ()
    return (causes.StartFailed(reason=exit_.reason, message=exit_.message, **where(exit_.fact)),)


def _rebooted(history: PodHistory, _life: Life, run: Run, exit_: Exit) -> Sequence[Cause]:
    """Return that the machine was booted between the start of a run and the record of its end."""
    known, death = "", death_of(run)
    if death is not None and death.sent is not None:
        return ()  # the end was noticed when it happened
    for fact, event in history.node_events(pleg.StreamFollowed):
        rebooted = known and event.boot_id and event.boot_id != known
        if rebooted and run.started_at < fact.at and exit_.fact.at >= fact.at - _NEAR_MILLISECONDS:
            near = not exit_.finished_at or exit_.finished_at >= fact.at - _BOOT_MILLISECONDS
            return (causes.Rebooted(before=known, after=event.boot_id, near=near, **where(fact)),)
        if fact.at > exit_.fact.at + _NEAR_MILLISECONDS:
            return ()
        known = event.boot_id or known
    return ()


def _stopped(history: PodHistory, life: Life, run: Run, exit_: Exit) -> Sequence[Cause]:
    found = stop_of(run, exit_, death_of(run))
    if found is None:
        return ()
    oom = _oom_fact(run, exit_)
    near = oom is not None and not _is_earlier(oom, exit_)
    return stopped(history, life, run, found, death_of(run), oom=near)


def _signal(history: PodHistory, life: Life, run: Run, exit_: Exit) -> Sequence[Cause]:
    death = death_of(run)
    sent = (death.sent or ()) if death else ()
    if death is None or not any(_may_end(one, exit_.exit_code) for one in sent):
        return ()
    removed = any(
        fact.at - exit_.finished_at < _REMOVED_MILLISECONDS
        for fact, _ in run.of(pleg.ContainerRemoved)
        if not run.of(container_gc.Removed)
    )
    again = run.again is not None
    return (
        causes.OtherSignal(
            signals=sent,
            removed=removed,
            started_again=again,
            certain=again or removed or _did_end(sent, death.sent_at, exit_),
            others=_not_chronolet(history, life, run, exit_),
            **where(exit_.fact),
        ),
    )


def _did_end(sent: Sequence[int], sent_at: int, exit_: Exit) -> bool:
    """Whether these signals certainly ended the run: by the exit code, unless they were long before, or by the time."""
    killed = exit_.exit_code == causes.EXIT_BY_SIGNAL + causes.KILL
    if sent_at and exit_.finished_at and not killed:
        return exit_.finished_at - sent_at <= _SOON_MILLISECONDS
    return exit_.exit_code - causes.EXIT_BY_SIGNAL in sent


def _not_chronolet(history: PodHistory, life: Life, run: Run, exit_: Exit) -> bool:
    """Whether the log shows that chronolet did not stop the run: it has all entries, and none is a reason to."""
    failed = any(
        event.id == run.id and event.probe != "Readiness" and event.result == "failure"
        for _, event in life.of(prober.ResultChanged)
    )
    ends = (pod.TerminationRequested, pod.PodFailed)
    ending_ = any(fact.position < exit_.fact.position for kind in ends for fact, _ in life.of(kind))
    complete = history.has_all_of(run, exit_.fact.position)
    # The pod's own entry about the end is missing, or the end was before the log began.
    unrecorded = not isinstance(exit_.fact.event, pod.PodEvent) or isinstance(exit_.fact.event, pod.PodAdopted)
    return complete and not (failed or ending_ or unrecorded)


def _not_stopped(history: PodHistory, life: Life, run: Run, exit_: Exit) -> bool:
    """Whether chronolet did not stop the run: Docker sent it no signal, or the log shows it. If one was noticed, others
    may have been missed.
    """
    death = death_of(run)
    return (death is not None and death.sent == ()) or _not_chronolet(history, life, run, exit_)


def _may_end(signal: int, exit_code: int) -> bool:
    """Whether the signal explains an exit with this code: it ended the process, or the process may have handled it by
    exiting.
    """
    if exit_code == causes.EXIT_BY_SIGNAL + signal:
        return True
    return signal not in _HARMLESS and exit_code != causes.EXIT_BY_SIGNAL + causes.KILL


def _out_of_memory(_history: PodHistory, life: Life, run: Run, exit_: Exit) -> Sequence[Cause]:
    killed = exit_.exit_code == causes.EXIT_BY_SIGNAL + causes.KILL
    found = _oom_fact(run, exit_)
    if not killed or found is None or _is_earlier(found, exit_):
        return ()
    return (_oom(life, run, found, main=True),)


def _oom_fact(run: Run, exit_: Exit) -> Fact | None:
    """Return the record of an OOM kill in this run that is nearest to its end; None if there is none.

    What was read after the death counts first, as only the first kill of a run is recorded when it happens. Docker
    reports a kill in the whole pod's cgroup for each of its containers, so it need not be a process of this one.
    """
    read = [fact for fact, event in run.of(pod.ExitRead) if event.oom_killed]
    noticed = [fact for fact, _ in run.of(pleg.OutOfMemory)]
    inspected = [exit_.fact] if exit_.reason == "OOMKilled" else []
    return next(iter((*read, *noticed[-1:], *inspected)), None)


def _is_earlier(oom: Fact, exit_: Exit) -> bool:
    """Whether an OOM kill was too long before the end of the run to have caused it."""
    return oom.at < exit_.finished_at - _NEAR_MILLISECONDS


def _oom(life: Life, run: Run, fact: Fact, *, main: bool) -> Cause:
    definition = life.definition_of(run)
    limit = str(definition.resources.limits.get("memory", "")) if definition is not None else None
    return causes.OutOfMemory(main=main, limit=limit, **where(fact))


def _gone(_history: PodHistory, _life: Life, _run: Run, exit_: Exit) -> Sequence[Cause]:
    return (causes.Gone(**where(exit_.fact)),) if exit_.reason == _STATUS_UNKNOWN else ()


def _engine_stopped(history: PodHistory, life: Life, run: Run, exit_: Exit) -> Sequence[Cause]:
    death = death_of(run)
    return engine_ended(history, life, exit_.finished_at, death.sent if death else None)


def _engine_down(history: PodHistory, _life: Life, run: Run, exit_: Exit) -> Sequence[Cause]:
    """Docker Engine was down when this container alone ended: nothing observed by what."""
    death = death_of(run)
    observed = death is not None and death.sent is not None
    return () if observed else outage_at(history, exit_.finished_at, whole_pod=False)


def _sandbox(history: PodHistory, life: Life, run: Run, exit_: Exit) -> Sequence[Cause]:
    for fact, event in sandbox_deaths(life):
        if run.started_at <= event.finished_at <= exit_.finished_at and fact.position <= exit_.fact.position:
            return (sandbox_died(history, life, run, (fact, event)),)
    return ()


def _code(history: PodHistory, life: Life, run: Run, exit_: Exit) -> Sequence[Cause]:
    signal = exit_.exit_code - causes.EXIT_BY_SIGNAL
    if signal not in causes.SIGNALS or signal in causes.CRASHES:
        return _by_itself(history, life, run, exit_)
    death = death_of(run)
    known = death is not None and death.sent is not None
    oom = _oom_fact(run, exit_)
    return (
        causes.Unexplained(
            exit_code=exit_.exit_code,
            signal=signal,
            not_docker=known,
            oom_at=oom.at if oom else 0,
            others=_not_stopped(history, life, run, exit_),
            **where(exit_.fact),
        ),
    )


def _by_itself(history: PodHistory, life: Life, run: Run, exit_: Exit) -> Sequence[Cause]:
    child = _oom_fact(run, exit_)
    words = [event.message for _, event in run.of(pod.ExitRead) if event.message]
    own, spec, death = life.definition_of(run), life.spec_of(run), death_of(run)
    known = death is not None and death.sent is not None
    exited = causes.ExitedByItself(
        exit_code=exit_.exit_code,
        policy=((own.restart_policy if own else None) or spec.spec.restart_policy) if spec is not None else "",
        last_words=words[-1] if words else "",
        not_docker=known,
        others=_not_stopped(history, life, run, exit_),
        **where(exit_.fact),
    )
    return (*((_oom(life, run, child, main=False),) if child else ()), exited)


_EXPLANATIONS: Sequence[Callable[[PodHistory, Life, Run, Exit], Sequence[Cause]]] = (
    _start_failed,
    _rebooted,
    _stopped,
    _engine_stopped,
    _signal,
    _out_of_memory,
    _gone,
    _engine_down,
    _sandbox,
    _code,
)


def _noticed_late(history: PodHistory, run: Run, exit_: Exit) -> Sequence[Cause]:
    """Return why an end was recorded late: the agent was down, Docker was, or nothing was written to the log."""
    noticed = next((fact for fact, _ in run.of(pleg.ContainerDied)), exit_.fact)
    late = noticed.at - exit_.finished_at if exit_.finished_at else 0
    if late < _LATE_MILLISECONDS or exit_.start_failed:
        return ()
    # The process that recorded the death began to follow Docker only after it.
    began = [
        fact.at
        for fact, event in history.node_events(pleg.StreamFollowed)
        if event.first and fact.actor == noticed.actor
    ]
    down = [fact.at for fact, _, back in outages(history) if back is None or back.at >= exit_.finished_at]
    reason: Any = ""
    if any(exit_.finished_at <= at for at in began):
        reason = "agent"
    elif any(at <= noticed.at for at in down):
        reason = "engine"
    elif _silence(history, noticed) >= _LATE_MILLISECONDS:
        reason = "log"
    return (causes.NoticedLate(milliseconds=late, reason=reason, **where(noticed)),)


def _silence(history: PodHistory, noticed: Fact) -> int:
    """Return for how long nothing was written to the log after a death, in milliseconds; 0 if that is not known."""
    if not isinstance(noticed.event, pleg.ContainerDied) or not noticed.event.finished_at:
        return 0
    died_at = noticed.event.finished_at
    return max(history.written_after(died_at, noticed.position) - died_at, 0)
