"""KubeEvents about the archive: when a problem begins, and when it is over. Pure.

Input: the keeper's state before the change. Output: `kube_events.Recorded`, at most one for each change. The keeper
remembers a defect of existing files by folding its own KubeEvent. Next: `decider`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from chronolet.keeper.state import Attempts, ProbeFiles, State
from chronolet_schemas import keeper, kube_events

INCOMPLETE = "ArchiveIncomplete"
COMPLETE = "ArchiveComplete"


def compared(node: str, state: State, found: str) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvent if the defect that was found differs from the one that was last reported."""
    if found == state.incomplete:
        return ()
    if found:
        return (_about(node, "Warning", INCOMPLETE, found),)
    return (_about(node, "Normal", COMPLETE, "No archive file is missing or known to be damaged any more"),)


def failed(node: str, state: State, error: str) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvent for a failure of the job in progress, but only for the first of consecutive failures."""
    if state.trimming:
        return () if state.trim_error else (_about(node, "Warning", "TrimFailed", error),)
    return () if state.archive_error else (_about(node, "Warning", "ArchiveFailed", error),)


def archiving_resumed(node: str, state: State) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvent for the first archive file after a failure."""
    return (_about(node, "Normal", "ArchiveResumed", "The log is archived again"),) if state.archive_error else ()


def trimming_resumed(node: str, state: State) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvent for the first trim after a failure."""
    return (_about(node, "Normal", "TrimResumed", "The log is trimmed again"),) if state.trim_error else ()


def probes_failed(
    node: str, attempts: Attempts, failed: keeper.ProbeArchiveFailed | keeper.ProbeDeletionFailed
) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvent for a failed job about probe outcomes, but only for the first of consecutive failures."""
    return () if attempts.error else (_about(node, "Warning", type(failed).__name__, failed.error),)


def probes_resumed(node: str, probes: ProbeFiles) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvent for the first archive file of probe outcomes after a failure."""
    if not probes.archive_attempts.error:
        return ()
    return (_about(node, "Normal", "ProbeArchiveResumed", "Probe outcomes are archived again"),)


def probe_deletion_resumed(node: str, probes: ProbeFiles) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvent for the first deletion of old files of probe outcomes after a failure."""
    if not probes.deletion_attempts.error:
        return ()
    return (_about(node, "Normal", "ProbeDeletionResumed", "Old files of probe outcomes are deleted again"),)


def recorded(state: State, event: kube_events.Recorded) -> State:
    """Fold a KubeEvent of the keeper."""
    if event.reason == INCOMPLETE:
        return replace(state, incomplete=event.message)
    return replace(state, incomplete="") if event.reason == COMPLETE else state


def _about(node: str, severity: Literal["Normal", "Warning"], reason: str, message: str) -> kube_events.Recorded:
    return kube_events.Recorded(object_kind="Node", name=node, severity=severity, reason=reason, message=message)
