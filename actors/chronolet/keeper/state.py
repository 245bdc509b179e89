"""State of the keeper: its current job, the progress of archiving and trimming, and shards that it no longer waits for.

The state is folded from the keeper's own events. Next: `decider`.
"""

from __future__ import annotations

import msgspec


class Attempts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Consecutive failures of a sort of job, when it is retried (milliseconds), and the last error."""

    failures: int = 0
    retry_at: int = 0
    error: str = ""


class ProbeFiles(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The archive of segments. `archiving` or `deleting` is set while a job is open. Ids of their stream are text."""

    jobs: int = 0
    """The number of jobs requested so far; makes each intent unique."""
    archiving: str = ""
    """The id up to which segments are being archived."""
    deleting: tuple[str, ...] = ()
    archived: str = ""
    """The id up to which segments are archived; empty if none is."""
    deleted: str = ""
    """The id up to which archive files were deleted, or are about to be; empty if none was."""
    may_delete: bool = False
    """Whether an archive file was written since files were last deleted."""
    archive_attempts: Attempts = Attempts()
    deletion_attempts: Attempts = Attempts()

    @property
    def intent(self) -> str:
        """The intent of the open job; empty if there is none."""
        return f"probes/{self.jobs}" if self.archiving or self.deleting else ""


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The keeper's state. Positions are text, empty if there is none yet.

    `archiving_upto` or `trimming` is set while a job is open.
    """

    jobs: int = 0
    """The number of jobs requested so far; makes each intent unique."""
    archiving_after: str = ""
    archiving_upto: str = ""
    trimming: str = ""
    archived: str = ""
    goal: str = ""
    """How far to trim: to the end of the last archive file but one. The entries of the last file stay in the stream."""
    trimmed: str = ""
    """The requested position of the last completed trim."""
    failures: int = 0
    """The number of consecutive failed attempts to write an archive file."""
    retry_at: int = 0
    """The earliest time of the next attempt, in milliseconds; 0 if the last one did not fail."""
    archive_error: str = ""
    """Why the last attempt to write an archive file failed; empty if it did not."""
    trim_failures: int = 0
    """The number of consecutive failed trims."""
    trim_retry_at: int = 0
    """The earliest time of the next trim, in milliseconds; 0 if the last one did not fail."""
    trim_error: str = ""
    """Why the last trim failed; empty if it did not."""
    incomplete: str = ""
    """What is wrong with existing archive files, as last reported; empty if nothing is known to be."""
    let_go: tuple[str, ...] = ()
    """The shards that no longer hold back trimming."""
    probes: ProbeFiles = ProbeFiles()
    ballast_gone: bool = False
    """Whether the disk reserve is currently released."""

    @property
    def problem(self) -> str:
        """What is wrong with the archive, in one line; empty if nothing is. Old files that cannot be deleted do not
        count: nothing is lost, and everything goes on.
        """
        failed = f"no archive file can be written: {self.archive_error}" if self.archive_error else ""
        probes = f"no probe outcomes can be archived: {error}" if (error := self.probes.archive_attempts.error) else ""
        return "; ".join(part for part in (failed, self.trim_error, self.incomplete, probes) if part)
