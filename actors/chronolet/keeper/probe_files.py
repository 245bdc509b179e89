"""The keeper's decisions about segments, the raw outcomes of probes: archive them, and delete old archive files. Pure.

Input: measurements and results of `effects`. Output: keeper events. One job at a time, next to those of the log; a
failed one is retried with the same back-off. Next: `decider`.

    idle -> archiving -> idle -> deleting -> idle

Each new archive file lets a few old ones be deleted. So archiving goes on during many deletions, and a clock that is
ahead deletes little before it is set back.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from chronolet.keeper import problems, signals, wanted
from chronolet.keeper.policy import Policy
from chronolet.keeper.state import Attempts, ProbeFiles, State
from chronolet.kernel.decider import Effect, EffectFailed
from chronolet.rules.probes.segments.file_names import FilePart, part_of
from chronolet_schemas import keeper
from chronolet_schemas.envelope import START, Event, Position

Result = signals.ProbeArchiveDone | signals.ProbeDeletionDone | signals.JobRefused | EffectFailed


def job(policy: Policy, probes: ProbeFiles, measured: signals.ProbesMeasured, now: int) -> Sequence[Event]:
    """Return the next job, if one is due."""
    if probes.intent:
        return ()
    old = _old(policy, probes, measured.files, now)
    if old and probes.may_delete and now >= probes.deletion_attempts.retry_at:
        return (keeper.ProbeDeletionRequested(files=tuple(one.name for one in old), upto=str(old[-1].last)),)
    # The measurement may predate the last archive file.
    after = Position.parse(probes.archived) if probes.archived else START
    is_new = bool(measured.upto) and Position.parse(measured.upto) > after
    if is_new and now >= probes.archive_attempts.retry_at and _is_worth_archiving(policy, measured, now):
        return (keeper.ProbeArchiveRequested(after=str(after), upto=measured.upto),)
    return ()


def _old(policy: Policy, probes: ProbeFiles, files: Sequence[str], now: int) -> Sequence[FilePart]:
    """Return the next files to be deleted: their newest segment is older than the policy keeps."""
    if not (policy.probes_max_age and probes.archived):
        return ()
    parts = [part for name in files if (part := part_of(name)) is not None]
    # By both clocks, Redis's and the agent's: one that is ahead alone makes nothing old.
    oldest = min(now, Position.parse(probes.archived).milliseconds) - policy.probes_max_age
    return [part for part in parts if part.last.milliseconds < oldest][: policy.probes_most_deleted]


def _is_worth_archiving(policy: Policy, measured: signals.ProbesMeasured, now: int) -> bool:
    old = now - measured.begun_at >= policy.probes_oldest
    return old or measured.is_full or measured.segments >= policy.probes_chunk


def job_ended(policy: Policy, state: State, result: Result, now: int) -> Sequence[Event]:
    """Return the events for the result of the open job."""
    probes = state.probes
    if isinstance(result, signals.ProbeArchiveDone):
        archived = keeper.ProbesArchived(
            file=result.file,
            after=probes.archived or str(START),
            upto=probes.archiving,
            outcomes=result.outcomes,
            size_bytes=result.size_bytes,
            sha256=result.sha256,
            skipped=result.skipped,
        )
        return (archived, *problems.probes_resumed(policy.node, probes))
    if isinstance(result, signals.ProbeDeletionDone):
        deleted = keeper.ProbesDeleted(files=probes.deleting, upto=probes.deleted)
        return (deleted, *problems.probe_deletion_resumed(policy.node, probes))
    failed = keeper.ProbeArchiveFailed if probes.archiving else keeper.ProbeDeletionFailed
    attempts = probes.archive_attempts if probes.archiving else probes.deletion_attempts
    event = failed(error=result.error, retry_at=policy.retry_at(attempts.failures + 1, now))
    return (event, *problems.probes_failed(policy.node, attempts, event))


def evolve(probes: ProbeFiles, event: Event) -> ProbeFiles:  # noqa: PLR0911 - a table, one line for each event
    """Fold an event about segments."""
    match event:
        case keeper.ProbeArchiveRequested():
            return replace(probes, jobs=probes.jobs + 1, archiving=event.upto)
        case keeper.ProbesArchived():
            return replace(probes, archiving="", archived=event.upto, may_delete=True, archive_attempts=Attempts())
        case keeper.ProbeArchiveFailed():
            return replace(probes, archiving="", archive_attempts=_failed(probes.archive_attempts, event))
        case keeper.ProbeDeletionRequested():
            return replace(probes, jobs=probes.jobs + 1, deleting=event.files, deleted=event.upto)
        case keeper.ProbesDeleted():
            return replace(probes, deleting=(), may_delete=False, deletion_attempts=Attempts())
        case keeper.ProbeDeletionFailed():
            return replace(probes, deleting=(), deletion_attempts=_failed(probes.deletion_attempts, event))
    return probes


def _failed(attempts: Attempts, event: keeper.ProbeArchiveFailed | keeper.ProbeDeletionFailed) -> Attempts:
    return Attempts(failures=attempts.failures + 1, retry_at=event.retry_at, error=event.error)


def outstanding(probes: ProbeFiles) -> Sequence[Effect]:
    """Return the open job, if there is one."""
    if probes.archiving:
        after = probes.archived or str(START)
        return (wanted.ArchiveProbes(subject="probes", intent=probes.intent, after=after, upto=probes.archiving),)
    if probes.deleting:
        return (wanted.DeleteProbes(subject="probes", intent=probes.intent, files=probes.deleting),)
    return ()
