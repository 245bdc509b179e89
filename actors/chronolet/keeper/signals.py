"""What the keeper's effects tell it. Positions as text."""

from __future__ import annotations

from chronolet_schemas.envelope import Signal


class LogMeasured(Signal, frozen=True, kw_only=True):
    """The log as it stands."""

    last: str
    archived: str
    begun_at: int
    """When the oldest entry in the stream was written, in milliseconds."""
    needed: dict[str, str]
    """Of each shard that ever had an owner: up to where it needs the log no more, by cursor and snapshot."""
    unowned: dict[str, int]
    """Those of them that have no living owner, and since when (milliseconds)."""


class ArchiveDone(Signal, frozen=True, kw_only=True):
    """The archive file is complete and on disk, and the server knows it."""

    subject: str
    intent: str
    file: str
    first: str
    last: str
    events: int
    size_bytes: int
    sha256: str


class TrimDone(Signal, frozen=True, kw_only=True):
    """The stream was trimmed; it goes by whole nodes, so `upto` may be a little before what was asked for."""

    subject: str
    intent: str
    upto: str
    removed: int


class JobRefused(Signal, frozen=True, kw_only=True):
    """The job could not be done; nothing is lost by that."""

    subject: str
    intent: str
    error: str


class BallastGone(Signal, frozen=True, kw_only=True):
    """The ballast file was deleted to make room."""

    freed_bytes: int
    error: str


class BallastBack(Signal, frozen=True, kw_only=True):
    """The ballast file is there, whole."""

    size_bytes: int
