"""The kernel's interface to Redis: a Protocol with two implementations under one contract suite, `redis.store` (the
versioned function library `functions.lua`) and `memory_store` (in memory).

Input: steps, acquisitions, snapshots. Output: plain values, also for refusals that a caller must expect (`Fenced`,
`Conflict`, `busy`). A lost connection is the exception `StoreUnreachable`: the call may or may not have happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from chronolet_schemas.envelope import Entry, Mail, Position, Record
from chronolet_schemas.keys import Shard


class StoreUnreachable(Exception):  # noqa: N818 - the condition's name
    """The server did not serve the call (connection lost, time-out, loading, read-only, full). `healing`: whether
    waiting may help. The text is one line for the operator: what, where, what to do.
    """

    def __init__(self, message: str, *, healing: bool = True) -> None:
        super().__init__(message)
        self.healing = healing


class StoreBroken(Exception):  # noqa: N818
    """The server's data is invalid (a key of the wrong type, ids exhausted): nothing was written."""


class HistoryMissing(Exception):  # noqa: N818 - the condition's name
    """Part of the history cannot be read here: it is archived, and the archive files are missing."""


def epoch_of(token: str) -> int:
    """The epoch of a fencing token `<epoch>:<owner>`, which counts the shard's owners; 0 for an empty token."""
    return int(token.partition(":")[0] or 0)


def owner_of(token: str) -> str:
    """The process named by a fencing token `<epoch>:<owner>`; empty for an empty token."""
    return token.partition(":")[2]


class Head(Struct, frozen=True):
    """A shard's hash. `at` is the position of the last event that its steps wrote (START if none); `attempts` maps a
    message to its number of attempts.
    """

    token: str
    version: int
    step_id: str
    at: Position
    log_cursor: Position
    mail_cursor: Position
    attempts: Mapping[str, int]
    schema: int
    unowned_since: int = 0


class Run(Struct, frozen=True):
    """The log's run and the number of shards of each kind, both fixed when the log began."""

    run: str
    shards: Mapping[str, int]
    new: bool
    """Whether this call began the log."""


DEAD_LETTERS = 10_000
"""The approximate number of dead letters to keep; the event in the log that reports each one stays."""


class DeadLetter(Struct, frozen=True):
    """A message that was given up, as stored in the dead-letter stream."""

    source: Literal["log", "mailbox", "signal"]
    at: str
    type: str
    entity: str
    data: bytes
    error: str


class Step(Struct, frozen=True):
    """One commit. It is encoded once; an unanswered call is resent byte for byte, which is idempotent by `step_id`."""

    shard: Shard
    token: str
    version: int
    step_id: str
    schema: int
    log_cursor: Position
    new_log_cursor: Position
    mail_cursor: Position
    new_mail_cursor: Position
    records: tuple[Record, ...]
    dead: tuple[DeadLetter, ...] = ()
    forget_attempts: tuple[str, ...] = ()
    even_if_full: bool = False
    """Commit even if the server has reached its maxmemory: for the keeper, whose events lead to trimming. A full server
    always commits steps without events and dead letters.
    """


class Committed(Struct, frozen=True):
    """The step is committed, now or by an earlier attempt. Its records have the ids `<ms>-<n>` up to `at`, with `n`
    increasing by one per record; without records `at` is the shard's last.
    """

    version: int
    at: Position


class Fenced(Struct, frozen=True):
    """The caller's token is stale: `token` owns the shard now (empty: no owner). The host must stop immediately."""

    token: str


class Conflict(Struct, frozen=True):
    """The shard is not in the state that the step expects, and must be reloaded. The fields are the server's.

    If the version is the expected one, the log or mailbox entry that the step consumes is missing: the server has lost
    it since it was read.
    """

    version: int
    log_cursor: Position
    mail_cursor: Position
    step_id: str
    at: Position


class Acquired(Struct, frozen=True):
    head: Head


class NotFree(Struct, frozen=True):
    """The shard was not acquired: its owner is alive, its token has changed, or a newer schema has written it."""

    reason: Literal["alive", "changed", "newer_schema"]
    token: str


class Snapshot(Struct, frozen=True):
    """The encoded states of one shard, folded from its own events up to `position`."""

    position: Position
    format: int
    state: bytes


class Inputs(Struct, frozen=True):
    """The result of one blocking read. `log` and `mail` are in order of position."""

    log: Sequence[Entry]
    mail: Mapping[Shard, Sequence[Mail]]


class Store(Protocol):
    """One node's log, mailboxes, shards and leases."""

    # -- starting ------------------------------------------------------------------------------------------------
    def check(self) -> Sequence[str]:
        """Check the server, load the functions, and return warnings. Raises StoreUnreachable(healing=False) for an
        unsuitable server (too old, evicting policy, read-only replica, wrong password).
        """

    def begin(self, run: str, shards: Mapping[str, int], record: Record) -> Run:
        """Begin the log with `record` (`kernel.LogStarted`) if there is none, else return the existing run."""

    def run(self) -> str:
        """The log's run, by which archives are filed; empty without a log."""

    # -- leases and ownership ------------------------------------------------------------------------------------
    def renew(self, process: str, info: str, ttl_milliseconds: int) -> None:
        """Renew the lease `alive:<process>` for another time-to-live."""

    def retire(self, process: str, shards: Sequence[tuple[Shard, str]]) -> None:
        """Release the shards that these tokens still own (token emptied, epoch kept) and drop the lease, on a clean
        stop.
        """

    def heads(self, shards: Sequence[Shard]) -> Mapping[Shard, Head]:
        """The shards' hashes; a shard that was never owned has an empty token and version 0."""

    def alive(self) -> Mapping[str, str]:
        """Processes with a valid lease: id -> info."""

    def up_milliseconds(self) -> int:
        """A lower bound of the server's uptime: it may have lost lease renewals from before its start."""

    def forget_dead(self) -> None:
        """Remove the names of processes whose lease has expired: no takeover removes one that died without a shard. A
        live process adds itself again with its next renewal.
        """

    def acquire(
        self, shard: Shard, expected_token: str, process: str, schema: int, *, proven_dead: bool
    ) -> Acquired | NotFree:
        """Acquire a shard whose token is still `expected_token`, if the process in that token has no lease (or is
        proven dead by its file lock, which also drops its lease). The new token is `<epoch + 1>:<process>`.
        """

    def unowned(self, shard: Shard, token: str) -> int | None:
        """Milliseconds for which the shard with this token has had no live owner, counted from the first call; an
        acquisition resets the count. None if the owner is alive or the token has changed.
        """

    # -- the step ------------------------------------------------------------------------------------------------
    def step(self, step: Step) -> Committed | Fenced | Conflict:
        """Commit the step. If the last committed step is this one (same `step_id`), the result is Committed."""

    def count_attempts(self, shard: Shard, token: str, counts: Mapping[str, int]) -> Fenced | None:
        """Record the attempt counts of messages in the shard hash, in one round trip, before deciding messages that may
        have failed before. If the reply is lost, some of the counts may be recorded. `counts` is not empty.
        """

    # -- reading -------------------------------------------------------------------------------------------------
    def read_log(self, after: Position, count: int, upto: Position | None = None) -> Sequence[Entry]:
        """Entries after a position, oldest first."""

    def read_mail(self, shard: Shard, after: Position, count: int) -> Sequence[Mail]:
        """Commands in a shard's mailbox after a position, oldest first."""

    def scan(self, after: Position, upto: Position | None = None) -> Iterator[Entry]:
        """All entries after one position up to another (None: the newest when the scan gets there), oldest first. Uses
        its own connection and requests one page ahead: the fast way to read much of the log. Raises as other calls do.
        """

    def last(self) -> Position:
        """The position of the newest entry ever written (START for an empty log)."""

    def wait(
        self, log_after: Position, mail_after: Mapping[Shard, Position], count: int, block_milliseconds: int
    ) -> Inputs:
        """Entries and mails after these positions; waits up to the given time for the first. For a single reader."""

    def wake(self) -> None:
        """End the current `wait` soon, or if there is none, the next one immediately (to add shards, or to stop)."""

    # -- commands ------------------------------------------------------------------------------------------------
    def send(
        self, shard: Shard, mail_type: str, entity: str, request: str, data: bytes
    ) -> Literal["sent", "duplicate", "busy"]:
        """Put a command into a mailbox. Idempotent by request id (`duplicate`); `busy` if 10,000 commands wait."""

    # -- snapshots, archive, trimming ----------------------------------------------------------------------------
    def snapshot(self, shard: Shard, token: str, snapshot: Snapshot) -> bool:
        """Store a snapshot; False if the token is stale, the log lacks its position, or the stored snapshot is not
        older (a snapshot at the same position is replaced if its format differs).
        """

    def read_snapshots(self, shards: Sequence[Shard]) -> Mapping[Shard, Snapshot]:
        """The snapshots of those shards that have one, in one round trip."""

    def archived(self) -> tuple[Position, Position]:
        """(archived up to, trimmed up to)."""

    def mark_archived(self, keeper: Shard, token: str, upto: Position) -> bool:
        """Record that all entries up to a position are in archive files on disk; False for a stale keeper."""

    def trim(self, keeper: Shard, token: str, upto: Position, holding: Sequence[Shard]) -> int | Fenced:
        """Remove entries up to a position, but never past the archive or the lowest cursor and snapshot of `holding`.
        Returns the number of removed entries.
        """

    def sizes(self) -> Mapping[str, int]:
        """Sizes for metrics: entries in the log, first and last position's ms, dead letters, bytes."""

    def close(self) -> None:
        """Close all connections."""
