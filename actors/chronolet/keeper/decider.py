"""The keeper's decisions: archive the log, trim entries that an older archive file contains, retry a failed job later.

Input: measurements and results of `effects`, `kernel.LogLost`. Output: keeper events, kernel events about the disk
reserve, KubeEvents about a lost log and about the archive. Next: `effects`, through `outstanding`; `probe_files`, which
decides the same about the outcomes of probes.

    idle -> archiving -> idle -> trimming -> idle

A job that fails leads back to idle. The next one of its sort waits until `retry_at` or `trim_retry_at`; those of the
other sort do not wait for it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, assert_never

from msgspec.structs import replace

from chronolet.keeper import probe_files, problems, signals, wanted
from chronolet.keeper.policy import Policy, trim_limit
from chronolet.keeper.state import State
from chronolet.kernel.decider import Decider, Effect, EffectFailed
from chronolet_schemas import keeper, kernel, kube_events
from chronolet_schemas.envelope import START, Event, Position

Result = signals.ArchiveDone | signals.TrimDone | signals.JobRefused | EffectFailed


def decide(policy: Policy, state: State, message: Any, now: int) -> Sequence[Event]:  # noqa: PLR0911 - a table
    """See `Decider.decide`."""
    match message:
        case signals.LogMeasured():
            return (
                *_shards(policy, state, message, now),
                *problems.compared(policy.node, state, message.incomplete),
                *_job(policy, state, message, now),
            )
        case signals.ProbesMeasured():
            return probe_files.job(policy, state.probes, message, now)
        case signals.ProbeArchiveDone() | signals.ProbeDeletionDone() | signals.JobRefused() | EffectFailed() if (
            message.intent == state.probes.intent
        ):
            return probe_files.job_ended(policy, state, message, now)
        case signals.ReserveReleased() if not state.ballast_gone:
            return (kernel.BallastGivenUp(freed_bytes=message.freed_bytes, error=message.error),)
        case signals.ReserveRestored() if state.ballast_gone:
            return (kernel.BallastRestored(size_bytes=message.size_bytes),)
        case kernel.LogLost():
            return (_log_lost(message),)
        case signals.ArchiveDone() | signals.TrimDone() | signals.JobRefused() | EffectFailed() if (
            message.intent == _intent(state)
        ):
            return _job_ended(policy, state, message, now)
    return ()


def _shards(policy: Policy, state: State, measured: signals.LogMeasured, now: int) -> Sequence[Event]:
    """Return the events for shards that stop holding back trimming, or hold it back again."""
    gone = [
        keeper.ShardLetGo(shard=shard, unowned_since=since)
        for shard, since in sorted(measured.unowned.items())
        if shard not in state.let_go and now - since > policy.let_go
    ]
    back = [keeper.ShardHeldAgain(shard=shard) for shard in state.let_go if shard not in measured.unowned]
    return (*gone, *back)


def _job(policy: Policy, state: State, measured: signals.LogMeasured, now: int) -> Sequence[Event]:
    if _intent(state):
        return ()
    # Trim before archiving: a busy node always has more to archive, whereas trimming stops at the last file but one.
    upto = _trim_end(state, measured)
    if now >= state.trim_retry_at and upto.n - _position(state.trimmed).n >= policy.trim_entries:
        return (keeper.TrimRequested(upto=str(upto)),)
    if now < state.retry_at:
        return ()
    # The measurement may predate the last archive file.
    archived = max(Position.parse(measured.archived), _position(state.archived))
    last = Position.parse(measured.last)
    if policy.is_worth_archiving(last=last, archived=archived, begun_at=measured.begun_at, now=now):
        return (keeper.ArchiveRequested(after=str(archived), upto=measured.last),)
    return ()


def _trim_end(state: State, measured: signals.LogMeasured) -> Position:
    needed = [Position.parse(at) for shard, at in measured.needed.items() if shard not in state.let_go]
    return trim_limit(_position(state.goal), needed)


def _position(text: str) -> Position:
    return Position.parse(text or "0-0")


def _log_lost(lost: kernel.LogLost) -> Event:
    """Return a KubeEvent for users who watch the node's KubeEvents; the kernel's event is already in the log."""
    what = "The whole log was lost" if lost.found == str(START) else f"The log lost its end after {lost.found}"
    return kube_events.Recorded(
        object_kind="Node",
        name=lost.node,
        severity="Warning",
        reason="LogLost",
        message=f"{what}: {lost.entries} entries up to {lost.had} are gone; containers were not touched",
    )


def _job_ended(policy: Policy, state: State, result: Result, now: int) -> Sequence[Event]:
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
            return (written, *problems.archiving_resumed(policy.node, state))
        case signals.TrimDone():
            trimmed = keeper.LogTrimmed(upto=result.upto, removed=result.removed)
            return (trimmed, *problems.trimming_resumed(policy.node, state))
        case signals.JobRefused() | EffectFailed():
            if state.trimming:
                retry_at = policy.retry_at(state.trim_failures + 1, now)
                failed: Event = keeper.TrimFailed(error=result.error, retry_at=retry_at)
            else:
                retry_at = policy.retry_at(state.failures + 1, now)
                failed = keeper.ArchiveFailed(error=result.error, retry_at=retry_at)
            return (failed, *problems.failed(policy.node, state, result.error))
        case _:
            assert_never(result)


def evolve(state: State, event: Event) -> State:  # noqa: PLR0911 - a table, one line for each event
    """See `Decider.evolve`."""
    match event:
        case keeper.ArchiveRequested():
            return replace(state, jobs=state.jobs + 1, archiving_after=event.after, archiving_upto=event.upto)
        case keeper.ArchiveWritten():
            idle = _idle(state, failures=0, retry_at=0, archive_error="")
            return replace(idle, archived=event.last, goal=state.archived)
        case keeper.ArchiveFailed():
            return _idle(state, failures=state.failures + 1, retry_at=event.retry_at, archive_error=event.error)
        case keeper.TrimRequested():
            return replace(state, jobs=state.jobs + 1, trimming=event.upto)
        case keeper.LogTrimmed():
            return _idle(state, trimmed=state.trimming, trim_failures=0, trim_retry_at=0, trim_error="")
        case keeper.TrimFailed(error=error, retry_at=retry_at):
            return _idle(state, trim_failures=state.trim_failures + 1, trim_retry_at=retry_at, trim_error=error)
    return _other(state, event)


def _other(state: State, event: Event) -> State:
    """Fold an event that is not about a job."""
    match event:
        case keeper.ShardLetGo():
            return replace(state, let_go=(*state.let_go, event.shard))
        case keeper.ShardHeldAgain():
            return replace(state, let_go=tuple(shard for shard in state.let_go if shard != event.shard))
        case kernel.BallastGivenUp():
            return replace(state, ballast_gone=True)
        case kernel.BallastRestored():
            return replace(state, ballast_gone=False)
        case kube_events.Recorded():
            return problems.recorded(state, event)
    probes = probe_files.evolve(state.probes, event)
    return state if probes is state.probes else replace(state, probes=probes)


def _idle(state: State, **changes: Any) -> State:
    return replace(state, archiving_after="", archiving_upto="", trimming="", **changes)


def outstanding(state: State) -> Sequence[Effect]:
    """See `Decider.outstanding`."""
    standing: tuple[Effect, ...] = (
        wanted.MeasureLog(subject="measure", intent="measure", reported=state.incomplete),
        wanted.GuardDisk(subject="disk", intent="disk"),
        wanted.IndexArchive(subject="indexes", intent="indexes"),
        *probe_files.outstanding(state.probes),
    )
    if state.problem:
        report = wanted.ReportProblem(subject="problem", intent=f"problem/{state.problem}", problem=state.problem)
        standing = (*standing, report)
    if state.archiving_upto:
        after, upto = state.archiving_after, state.archiving_upto
        return (*standing, wanted.WriteArchive(subject="job", intent=_intent(state), after=after, upto=upto))
    if state.trimming:
        trim = wanted.TrimLog(subject="job", intent=_intent(state), upto=state.trimming, let_go=state.let_go)
        return (*standing, trim)
    return standing


def _intent(state: State) -> str:
    return f"job/{state.jobs}" if state.archiving_upto or state.trimming else ""


def decider(policy: Policy) -> Decider[State]:
    """Return the keeper's decider with this policy."""
    return Decider(
        initial=State(),
        decide=functools.partial(decide, policy),
        evolve=evolve,
        due=lambda _: None,
        outstanding=outstanding,
    )


DECIDER: Decider[State] = decider(Policy())
