"""Defines the actor kind `keeper`.

Input: the workers, or None if only events are folded; the policy. Output: `Kind`. Next: `node`.
"""

from __future__ import annotations

from chronolet.keeper import signals, wanted
from chronolet.keeper.decider import decider
from chronolet.keeper.effects import Keeping
from chronolet.keeper.policy import Policy
from chronolet.keeper.state import State
from chronolet.kernel.kind import EventDriven, Job, Kind, signals_of
from chronolet_schemas import kernel

_ARCHIVE_SECONDS = 600.0


def kind(keeping: Keeping | None = None, policy: Policy | None = None) -> Kind[State]:
    """Build the Kind. Without `keeping`, it can only fold events."""
    return Kind(
        name="keeper",
        shards=1,
        state=State,
        format=2,
        decider=decider(policy or Policy()),
        signals=signals_of(signals),
        subscribes={kernel.LogLost: lambda _: ("node",)},
        precedence=9,
        at_start=("node",),
        watches_clock=True,
        commits_when_full=True,
        effects={
            wanted.WriteArchive: Job(keeping.write, _ARCHIVE_SECONDS),
            wanted.TrimLog: Job(keeping.trim, _ARCHIVE_SECONDS),
            wanted.ArchiveProbes: Job(keeping.probes.write, _ARCHIVE_SECONDS),
            wanted.DeleteProbes: Job(keeping.probes.delete, _ARCHIVE_SECONDS),
        }
        if keeping
        else {},
        standing={
            wanted.MeasureLog: Job(keeping.measure),
            wanted.GuardDisk: EventDriven(keeping.guard),
            wanted.IndexArchive: Job(keeping.index),
            wanted.ReportProblem: Job(keeping.problem.report),
        }
        if keeping
        else {},
    )
