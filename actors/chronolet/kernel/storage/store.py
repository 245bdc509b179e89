"""What the kernel needs from Redis, as one Protocol with two implementations under one contract suite: `redis_store`
(the versioned Function library `functions.lua`) and `memory_store` (the in-memory twin).

Comes in: steps, acquisitions, snapshots. Goes out: plain answers, never exceptions for what a caller must expect
(`Fenced`, `Conflict`, `Busy` are values). A lost connection is `StoreUnreachable`: the call may or may not have
happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from chronolet_schemas.envelope import Entry, Mail, Position, Record
from chronolet_schemas.keys import Shard


class StoreUnreachable(Exception):  # noqa: N818 - the condition's name
    """The server did not answer (connection lost, time-out, loading, read-only, full). `healing` tells whether waiting
    may help; the text is one clear line for people: what, where, what to do.
    """

    def __init__(self, message: str, *, healing: bool = True) -> None:
        super().__init__(message)
        self.healing = healing


class StoreBroken(Exception):  # noqa: N818
    """The server's data is not what it must be (a key of the wrong type, ids exhausted): nothing was written."""


class HistoryMissing(Exception):  # noqa: N818 - the condition's name
    """Part of the history cannot be read here: archived, but the archive files are not at hand."""


def epoch_of(token: str) -> int:
    """How many owners there were up to the one of a token `<epoch>:<owner>`; 0 for no token."""
    return int(token.partition(":")[0] or 0)


def owner_of(token: str) -> str:
    """The process that a token `<epoch>:<owner>` names; empty if it names none."""
    return token.partition(":")[2]


class Head(Struct, frozen=True):
    """A shard's hash. `at` is the position of the last event its steps wrote (START if none)."""

    token: str
    version: int
    step_id: str
    at: Position
    log_cursor: Position
    mail_cursor: Position
    tries: Mapping[str, int]
    schema: int
    unowned_since: int = 0


class Run(Struct, frozen=True):
    """The log's first event, and the number of shards of each kind, fixed by it."""

    run: str
    shards: Mapping[str, int]
    new: bool
    """This very call began the log."""


DEAD_LETTERS = 10_000
"""About so many dead letters are kept; the event in the log that tells of each one stays."""


class DeadLetter(Struct, frozen=True):
    """A message given up, as it goes to the dead-letter stream."""

    source: Literal["log", "mailbox", "signal"]
    at: str
    type: str
    entity: str
    data: bytes
    error: str


class Step(Struct, frozen=True):
    """One commit. Encoded once; an unanswered call is sent again with exactly these bytes."""

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
    forget_tries: tuple[str, ...] = ()
    even_if_full: bool = False
    """Commit even if the server has reached its maxmemory: for the keeper, whose events lead to trimming. A step
    without events and dead letters is committed on a full server anyway.
    """


class Committed(Struct, frozen=True):
    """Done, now or by an earlier try of the same step. The records got the ids `<ms>-<n>` that end with `at`, `n`
    going up by one from record to record; without records `at` is the shard's last.
    """

    version: int
    at: Position


class Fenced(Struct, frozen=True):
    """Somebody else owns the shard (or nobody: empty token). The host must stop at once."""

    token: str


class Conflict(Struct, frozen=True):
    """The shard is not in the state that the step expects: it must be reloaded. Carries what the server has.

    With the very version that the step expects: the log or mailbox entry that it consumes is not there, for the server
    has lost it since it was read.
    """

    version: int
    log_cursor: Position
    mail_cursor: Position
    step_id: str
    at: Position


class Acquired(Struct, frozen=True):
    head: Head


class NotFree(Struct, frozen=True):
    """The shard was not acquired: owner alive, changed hands meanwhile, or written by a newer schema."""

    reason: Literal["alive", "changed", "newer_schema"]
    token: str


class Snapshot(Struct, frozen=True):
    """States of one shard, folded from its own events up to `position`."""

    position: Position
    format: int
    state: bytes


class Inputs(Struct, frozen=True):
    """What one blocking read brought. `log` and `mail` are in order of position."""

    log: Sequence[Entry]
    mail: Mapping[Shard, Sequence[Mail]]


class Store(Protocol):
    """One node's log, mailboxes, shards and leases."""

    # -- starting ------------------------------------------------------------------------------------------------
    def check(self) -> Sequence[str]:
        """Verify the server and load the functions. Warnings as text; raises StoreUnreachable(healing=False) for a
        server that cannot serve (too old, evicting policy, read-only replica, wrong password).
        """

    def begin(self, run: str, shards: Mapping[str, int], record: Record) -> Run:
        """Start the log with `record` (`kernel.LogStarted`) where there is none, else tell the run that there is."""

    def run(self) -> str:
        """The log's run, by which archives are filed; empty where there is no log."""

    # -- leases and ownership ------------------------------------------------------------------------------------
    def renew(self, process: str, info: str, ttl_milliseconds: int) -> None:
        """Keep `alive:<process>` for another time-to-live."""

    def retire(self, process: str, shards: Sequence[tuple[Shard, str]]) -> None:
        """A clean stop: free the shards still held by these tokens (token emptied, epoch kept) and drop the lease."""

    def heads(self, shards: Sequence[Shard]) -> Mapping[Shard, Head]:
        """The shards' hashes; one that was never owned has an empty token and version 0."""

    def alive(self) -> Mapping[str, str]:
        """Processes with a valid lease: id -> info."""

    def up_milliseconds(self) -> int:
        """For how long at least the server has been up: of renewals before that it may know nothing."""

    def forget_dead(self) -> None:
        """Keep no names of processes whose lease ran out: who dies without a shard is not taken over from. A living
        one enters itself again with its next renewal.
        """

    def acquire(
        self, shard: Shard, expected_token: str, process: str, schema: int, *, proven_dead: bool
    ) -> Acquired | NotFree:
        """Take a shard whose hash still says `expected_token`, if that token's process has no lease (or is proven dead
        by its file lock, which also drops its lease). The new token is `<epoch + 1>:<process>`.
        """

    def unowned(self, shard: Shard, token: str) -> int | None:
        """For how many milliseconds the shard with this token is known to have no living owner; the first call starts
        that clock, an acquisition ends it. None if its owner lives or the token is another one.
        """

    # -- the step ------------------------------------------------------------------------------------------------
    def step(self, step: Step) -> Committed | Fenced | Conflict:
        """Commit. A Conflict whose `step_id` is the step's own is answered as Committed by the implementation."""

    def count_tries(self, shard: Shard, token: str, counts: Mapping[str, int]) -> Fenced | None:
        """Before messages are decided that may have failed before: remember in one round trip which try each is.
        After a lost answer some of the counts may be remembered. `counts` is not empty.
        """

    # -- reading -------------------------------------------------------------------------------------------------
    def read_log(self, after: Position, count: int, upto: Position | None = None) -> Sequence[Entry]:
        """Entries after a position, oldest first."""

    def read_mail(self, shard: Shard, after: Position, count: int) -> Sequence[Mail]:
        """Commands that wait in a shard's mailbox after a position, oldest first."""

    def scan(self, after: Position, upto: Position | None = None) -> Iterator[Entry]:
        """All entries after a position up to another (None: the newest when the scan gets there), oldest first. On a
        connection of its own, one page requested ahead: the fast way through much of the log. Raises as the calls
        do.
        """

    def last(self) -> Position:
        """The position of the newest entry ever written (START for an empty log)."""

    def wait(
        self, log_after: Position, mail_after: Mapping[Shard, Position], count: int, block_milliseconds: int
    ) -> Inputs:
        """Entries and mails after these positions; waits for the first one at most so long (used by one reader)."""

    def wake(self) -> None:
        """End a `wait` that is under way, soon; if none is, the next one ends at once (to add shards, or to stop)."""

    # -- commands ------------------------------------------------------------------------------------------------
    def send(
        self, shard: Shard, mail_type: str, entity: str, request: str, data: bytes
    ) -> Literal["sent", "duplicate", "busy"]:
        """Put a command into a mailbox; the same request id at most once, `busy` above 10,000 waiting."""

    # -- snapshots, archive, trimming ----------------------------------------------------------------------------
    def snapshot(self, shard: Shard, token: str, snapshot: Snapshot) -> bool:
        """Keep a snapshot if the token is good, its position grows and the log has that position; False if not."""

    def read_snapshots(self, shards: Sequence[Shard]) -> Mapping[Shard, Snapshot]:
        """The snapshots of those shards that have one, in one round trip."""

    def archived(self) -> tuple[Position, Position]:
        """(archived up to, trimmed up to)."""

    def mark_archived(self, keeper: Shard, token: str, upto: Position) -> bool:
        """Remember that everything up to a position is in archive files on disk; False for a stale keeper."""

    def trim(self, keeper: Shard, token: str, upto: Position, holding: Sequence[Shard]) -> int | Fenced:
        """Remove entries up to a position, but never past the archive, nor past the lowest cursor and snapshot of
        `holding`. How many went.
        """

    def sizes(self) -> Mapping[str, int]:
        """Lengths and figures for measuring: entries in the log, first and last position's ms, dead letters, bytes."""

    def close(self) -> None:
        """Give back connections."""
