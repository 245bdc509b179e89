"""The keeper's decisions: archive first, then trim what was archived; a failed job is asked for again a minute later.

Comes in: measurements and results of `effects`. Goes out: keeper events, and kernel events about the disk.

    idle -> archiving -> trimming -> idle          (a job that fails: idle, not before `retry_at`)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from chronolet.keeper import policy, signals, wanted
from chronolet.keeper.state import State
from chronolet.kernel.decider import Decider, Effect, EffectFailed
from chronolet_schemas import keeper, kernel
from chronolet_schemas.envelope import Event, Position

Result = signals.ArchiveDone | signals.TrimDone | signals.JobRefused | EffectFailed


def decide(state: State, message: Any, now: int) -> Sequence[Event]:
    """See `Decider.decide`."""
    match message:
        case signals.LogMeasured():
            return (*_let_go(state, message, now), *_archive(state, message, now))
        case signals.BallastGone():
            return (kernel.BallastGivenUp(freed_bytes=message.freed_bytes, error=message.error),)
        case signals.BallastBack():
            return (kernel.BallastRestored(size_bytes=message.size_bytes),)
        case signals.ArchiveDone() | signals.TrimDone() | signals.JobRefused() | EffectFailed():
            return _answered(state, message, now) if message.intent == _intent(state) else ()
    return ()


def _let_go(state: State, measured: signals.LogMeasured, now: int) -> Sequence[Event]:
    return tuple(
        keeper.ShardLetGo(shard=shard, unowned_since=since)
        for shard, since in sorted(measured.unowned.items())
        if shard not in state.let_go and now - since > policy.LET_GO_MILLISECONDS
    )


def _archive(state: State, measured: signals.LogMeasured, now: int) -> Sequence[Event]:
    if state.archiving_upto or state.trimming or now < state.retry_at:
        return ()
    worth = policy.is_worth_archiving(
        last=Position.parse(measured.last),
        archived=Position.parse(measured.archived),
        begun_at=measured.begun_at,
        now=now,
    )
    return (keeper.ArchiveRequested(after=measured.archived, upto=measured.last),) if worth else ()


def _answered(state: State, result: Result, now: int) -> Sequence[Event]:
    match result:
        case signals.ArchiveDone():
            written = keeper.ArchiveWritten(
                file=result.file,
                first=result.first,
                last=result.last,
                events=result.events,
                size_bytes=result.size_bytes,
                sha256=result.sha256,
            )
            # The newest archived part stays in the stream until the next one is archived.
            return (written, keeper.TrimRequested(upto=state.archived)) if state.archived else (written,)
        case signals.TrimDone():
            return (keeper.LogTrimmed(upto=state.trimming, removed=result.removed),)
        case signals.JobRefused() | EffectFailed():
            retry_at = now + policy.RETRY_MILLISECONDS
            if state.trimming:
                return (keeper.TrimFailed(error=result.error, retry_at=retry_at),)
            return (keeper.ArchiveFailed(error=result.error, retry_at=retry_at),)


def evolve(state: State, event: Event) -> State:
    """See `Decider.evolve`."""
    match event:
        case keeper.ArchiveRequested():
            return replace(state, jobs=state.jobs + 1, archiving_after=event.after, archiving_upto=event.upto)
        case keeper.ArchiveWritten():
            return replace(state, archiving_after="", archiving_upto="", archived=event.last)
        case keeper.ArchiveFailed():
            return replace(state, archiving_after="", archiving_upto="", retry_at=event.retry_at)
        case keeper.TrimRequested():
            return replace(state, jobs=state.jobs + 1, trimming=event.upto)
        case keeper.LogTrimmed():
            return replace(state, trimming="")
        case keeper.TrimFailed():
            return replace(state, trimming="", retry_at=event.retry_at)
        case keeper.ShardLetGo():
            return replace(state, let_go=(*state.let_go, event.shard))
    return state


def outstanding(state: State) -> Sequence[Effect]:
    """See `Decider.outstanding`."""
    standing: tuple[Effect, ...] = (
        wanted.MeasureLog(subject="measure", intent="measure"),
        wanted.GuardDisk(subject="disk", intent="disk"),
    )
    if state.archiving_upto:
        after, upto = state.archiving_after, state.archiving_upto
        return (*standing, wanted.WriteArchive(subject="job", intent=_intent(state), after=after, upto=upto))
    if state.trimming:
        trim = wanted.TrimLog(subject="job", intent=_intent(state), upto=state.trimming, let_go=state.let_go)
        return (*standing, trim)
    return standing


def _intent(state: State) -> str:
    return f"job/{state.jobs}" if state.archiving_upto or state.trimming else ""


DECIDER: Decider[State] = Decider(
    initial=State(), decide=decide, evolve=evolve, due=lambda _: None, outstanding=outstanding
)
