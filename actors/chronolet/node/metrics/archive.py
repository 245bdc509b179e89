"""Metrics of the archived part of the log.

Input: keeper events; the archive's current problem. Output: counters and a gauge in a registry. The kubelet has no
counterparts. Next: `metrics`.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client.metrics import Counter, Gauge
from prometheus_client.registry import CollectorRegistry

from chronolet_schemas import keeper
from chronolet_schemas.envelope import Event


class ArchiveMetrics:
    """Archive metrics. They stay 0 in a process that does not host the keeper."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.jobs = Counter(
            "chronolet_archive_jobs_total",
            "Attempts to write an archive file, to trim the log, or to write or delete files of probe outcomes",
            ["job", "outcome"],
            registry=registry,
        )
        for job in ("write", "trim", "write_probes", "delete_probes"):
            for outcome in ("done", "failed"):
                self.jobs.labels(job, outcome)
        self.problem = Gauge(
            "chronolet_archive_problem",
            "1 while the archive cannot be written, read back or found complete",
            registry=registry,
        )

    def show(self, current: Callable[[], str]) -> None:
        """Make the gauge show whether `current` returns a problem; an empty string means none."""
        self.problem.set_function(lambda: float(bool(current())))

    def count(self, event: Event) -> None:
        """Count one committed event."""
        match event:
            case keeper.ArchiveWritten():
                self.jobs.labels("write", "done").inc()
            case keeper.ArchiveFailed():
                self.jobs.labels("write", "failed").inc()
            case keeper.LogTrimmed():
                self.jobs.labels("trim", "done").inc()
            case keeper.TrimFailed():
                self.jobs.labels("trim", "failed").inc()
            case keeper.ProbesArchived():
                self.jobs.labels("write_probes", "done").inc()
            case keeper.ProbeArchiveFailed():
                self.jobs.labels("write_probes", "failed").inc()
            case keeper.ProbesDeleted():
                self.jobs.labels("delete_probes", "done").inc()
            case keeper.ProbeDeletionFailed():
                self.jobs.labels("delete_probes", "failed").inc()
            case _:
                pass
