"""State of the keeper: its current job, the progress of archiving and trimming, and shards that it no longer waits for.

The state is folded from the keeper's own events. Next: `decider`.
"""

from __future__ import annotations

import msgspec


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
    ballast_gone: bool = False
    """Whether the disk reserve is currently released."""

    @property
    def problem(self) -> str:
        """What is wrong with the archive, in one line; empty if nothing is."""
        failed = f"no archive file can be written: {self.archive_error}" if self.archive_error else ""
        return "; ".join(part for part in (failed, self.trim_error, self.incomplete) if part)
