"""The kernel's interface to Redis: a Protocol with two implementations, `redis.store` (the versioned function libraries
`functions/`) and `memory_store` (in memory). Both pass the same contract suite.

Input: steps, acquisitions, snapshots. Output: plain values, including refusals that a caller must expect (`Fenced`,
`Conflict`, `busy`). A lost connection raises `StoreUnreachable`: the call may or may not have been executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from chronolet.kernel.storage.layout import Decided, LayoutStore
from chronolet.kernel.storage.members import Members
from chronolet_schemas.envelope import Entry, Mail, Position, Record
from chronolet_schemas.keys import Shard


class StoreUnreachable(Exception):  # noqa: N818 - the condition's name
    """The server did not serve the call (connection lost, time-out, loading, read-only, full). `healing`: whether
    waiting may help. The text is one line for the operator: what failed, where, and what to do.
    """

    def __init__(self, message: str, *, healing: bool = True) -> None:
        super().__init__(message)
        self.healing = healing


class StoreBroken(Exception):  # noqa: N818
    """The server's data is invalid (a key of the wrong type, ids exhausted), or the server refused the call as invalid:
    nothing was written.
    """


class HistoryMissing(Exception):  # noqa: N818 - the condition's name
    """Part of the history cannot be read on this machine: it is archived, and the archive files are missing.

    `reached`: what the reader wants up to this position has been read. `resume`: the entries after this position can be
    read again. None if that is not known.
    """

    def __init__(self, text: str, resume: Position | None = None, reached: Position | None = None) -> None:
        super().__init__(text)
        self.resume = resume
        self.reached = reached


def epoch_of(token: str) -> int:
    """Return the epoch of a fencing token `<epoch>:<owner>`; 0 for an empty token."""
    return int(token.partition(":")[0] or 0)


def owner_of(token: str) -> str:
    """Return the process named by a fencing token `<epoch>:<owner>`; empty for an empty token."""
    return token.partition(":")[2]


class Head(Struct, frozen=True):
    """The content of a shard's hash. `at` is the position of the last event that the shard's steps wrote (START if
    none). `attempts` maps a message's identity or an effect's mark to the number of attempts.
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
    acquired_at: int = 0
    """When the current owner acquired the shard, by the server's clock; 0 if an older release acquired it last."""
    released: str = ""
    """The token under which the shard was last moved (`Members.release`)."""
    moves: int = 0
    """How often the shard was moved gracefully."""
    shards: int = 0
    """The number of shards that the kind had when this hash was written by a change of that number; 0 if there was no
    change.
    """
    decided: Decided = ()
    """What the former shards had decided when the number changed (`step.inherited`)."""
    unclean_epoch: int = 0
    """If the number changed after a former owner had ended without a handover: the epoch before the next owner's."""


class Run(Struct, frozen=True):
    """The log's run and the current number of shards of each kind."""

    run: str
    shards: Mapping[str, int]
    new: bool
    """Whether this call began the log."""


NOBODY = "-"
"""For `Store.retire`: releases shards without ending any process's lease. It is no valid name of a process."""
DEAD_LETTERS = 10_000
"""Approximate maximum number of dead letters that the server retains. The log events that report older ones are kept.
"""


class DeadLetter(Struct, frozen=True):
    """A message that was given up, as stored in the dead-letter stream."""

    source: Literal["log", "mailbox", "signal"]
    at: str
    type: str
    entity: str
    data: bytes
    error: str


class Step(Struct, frozen=True):
    """One commit. It is encoded once and resent unchanged until there is a reply; `step_id` makes this idempotent."""

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
    """The step was committed, by this call or by an earlier attempt. The step's records have the ids `<ms>-<n>` up to
    `at`, with `n` increasing by one per record; if it has no records, `at` is the shard's last position.
    """

    version: int
    at: Position


class Fenced(Struct, frozen=True):
    """The caller's fencing token is stale. `token` is the current owner's, empty if the shard has no owner. The host
    must stop immediately.
    """

    token: str


class Conflict(Struct, frozen=True):
    """The shard is not in the state that the step expects, and must be reloaded. The fields contain the server's
    values.

    If `version` is the expected one, the log or mailbox entry that the step consumes is missing: the server has lost it
    since it was read.
    """

    version: int
    log_cursor: Position
    mail_cursor: Position
    step_id: str
    at: Position


class Beat(Struct, frozen=True):
    """One renewal of a process. `number` grows with each attempt, and is what other processes watch. `answered`: the
    number of the last renewal that got a reply, 0 if none. `shards`: those whose owner the caller wants to know.
    """

    number: int
    answered: int
    shards: Sequence[Shard] = ()


FIRST_BEAT = Beat(1, 0)


class Renewed(Struct, frozen=True):
    """The result of a renewal. `known`: whether the server still had the last answered renewal; if not, another process
    has taken over a shard of this one, or the server has lost renewals. `tokens`: the current token of each shard.
    """

    known: bool
    tokens: Mapping[Shard, str]


Proof = Literal["released", "lock", "counter"]
"""Why a shard is free: it has no owner, or the caller owns it; its owner is dead by its life lock, or by its renewal
counter, which has not moved for a time-to-live.
"""


class Acquired(Struct, frozen=True):
    head: Head


class NotFree(Struct, frozen=True):
    """The shard was not acquired: its owner is alive, its token has changed, or it was written with a newer schema."""

    reason: Literal["alive", "changed", "newer_schema"]
    token: str


class Snapshot(Struct, frozen=True):
    """The encoded states of one shard, folded from the shard's own events up to `position`."""

    position: Position
    format: int
    state: bytes


class Inputs(Struct, frozen=True):
    """The result of one blocking read. `log` and `mail` are ordered by position. `members_changed`: see
    `Keys.membership`.
    """

    log: Sequence[Entry]
    mail: Mapping[Shard, Sequence[Mail]]
    members_changed: bool = False


class Store(Members, LayoutStore, Protocol):
    """One node's log, mailboxes, shards, leases and members."""

    # -- starting ------------------------------------------------------------------------------------------------
    def check(self) -> Sequence[str]:
        """Check the server, load the functions, and return warnings. Raises StoreUnreachable(healing=False) if the
        server is unsuitable (for example too old, with a policy that evicts keys, a read-only replica) or refuses the
        password.
        """

    def begin(self, run: str, shards: Mapping[str, int], record: Record) -> Run:
        """Begin the log with `record` (`kernel.LogStarted`) if there is none. Returns the new or the existing run."""

    def record(self, run: str, record: Record) -> bool:
        """Append an event of a process to the log. Returns False if the log belongs to another run. After a lost reply,
        a repeat appends the event again.
        """

    def run(self) -> str:
        """Return the log's run, under which its archive files are stored; empty if there is no log."""

    # -- leases and ownership ------------------------------------------------------------------------------------
    def renew(self, process: str, info: str, ttl_milliseconds: int, beat: Beat = FIRST_BEAT) -> Renewed:
        """Renew the process's lease: record the number of this renewal, and read the tokens of `beat.shards`.

        The key `alive:<process>` lasts for another time-to-live. It informs people; its expiry proves nothing.
        """

    def retire(self, process: str, shards: Sequence[tuple[Shard, str]]) -> None:
        """On a clean stop, release the shards that these tokens still own and drop the lease. Tokens are cleared;
        epochs are kept.
        """

    def heads(self, shards: Sequence[Shard]) -> Mapping[Shard, Head]:
        """Return the shards' hashes. A shard that was never owned has an empty token and version 0."""

    def alive(self) -> Mapping[str, str]:
        """Return the processes that renewed their lease within its time-to-live by the server's clock: id -> info."""

    def renewals(self) -> Mapping[str, str]:
        """Return the number of the last renewal of each listed process; empty for a process of an older release, which
        counts none.
        """

    def forget_dead(self) -> None:
        """Remove the names of processes whose leases have expired. A takeover does this only for owners of shards. A
        live process adds its name again with its next renewal.
        """

    def acquire(
        self,
        shard: Shard,
        expected_token: str,
        process: str,
        schema: int,
        *,
        proof: Proof = "released",
        counter: str = "",
    ) -> Acquired | NotFree:
        """Acquire a shard whose token is still `expected_token`. The new token is `<epoch + 1>:<process>`.

        `proof` says why the shard is free. "counter" is refused if the former owner's renewal counter is no longer
        `counter`. A takeover removes the former owner from the list of processes, so its next renewal is not `known`.
        """

    def unowned(self, shard: Shard, token: str) -> int | None:
        """Return for how many milliseconds the shard with this token has had no live owner, counted from its release
        or, if its owner has died, from the first call of this method. An acquisition resets the count. Returns None if
        the owner is alive or the token has changed.
        """

    # -- the step ------------------------------------------------------------------------------------------------
    def step(self, step: Step) -> Committed | Fenced | Conflict:
        """Commit the step. Also returns Committed if the shard's last committed step is this one (same `step_id`)."""

    def count_attempts(self, shard: Shard, token: str, counts: Mapping[str, int]) -> Fenced | None:
        """Record attempt counts in the shard's hash, by message identity or effect mark, in one round trip. Call this
        before the attempts. If the reply is lost, only some of the counts may be recorded. `counts` is not empty.
        Returns Fenced if the token is stale, else None.
        """

    # -- reading -------------------------------------------------------------------------------------------------
    def read_log(self, after: Position, count: int, upto: Position | None = None) -> Sequence[Entry]:
        """Return up to `count` entries after a position (and not after `upto`), oldest first."""

    def read_mail(self, shard: Shard, after: Position, count: int) -> Sequence[Mail]:
        """Return up to `count` commands in a shard's mailbox after a position, oldest first."""

    def scan(self, after: Position, upto: Position | None = None) -> Iterator[Entry]:
        """Yield all entries after `after` up to `upto`, oldest first. Without `upto`, the scan ends at the newest entry
        that it finds. It uses its own connection and requests one page ahead, so it is the fast way to read much of the
        log. Raises the same errors as other calls.
        """

    def last(self) -> Position:
        """Return the position of the newest entry ever written; START if there is none."""

    def wait(
        self,
        log_after: Position | None,
        mail_after: Mapping[Shard, Position],
        count: int,
        block_milliseconds: int,
        *,
        members: bool = False,
    ) -> Inputs:
        """Return the log entries and mailbox commands after these positions, at most `count` from each stream; no log
        entries if `log_after` is None. If there are none yet, wait for up to `block_milliseconds`, or until `wake` is
        called or, with `members`, the members may have changed since the last call. Only one thread may call this.
        """

    def wake(self) -> None:
        """Make the current `wait` return soon or, if there is none, the next one return immediately (to add shards, or
        to stop).
        """

    # -- commands ------------------------------------------------------------------------------------------------
    def send(
        self, shard: Shard, mail_type: str, entity: str, request: str, data: bytes, *, of: int = 0
    ) -> Literal["sent", "duplicate", "busy", "moved"]:
        """Put a command into a shard's mailbox. Idempotent: returns `duplicate` if the request id is known. Returns
        `busy` if 10,000 commands are waiting.

        `of`: the number of shards with which the caller chose the shard. Returns `moved` if the kind has another number
        now: read the layout, choose again. Needed only for a kind whose number may change.
        """

    # -- snapshots, archive, trimming ----------------------------------------------------------------------------
    def snapshot(self, shard: Shard, token: str, snapshot: Snapshot) -> bool:
        """Store a snapshot. Returns False if the token is stale, the log lacks the snapshot's position, or the stored
        snapshot is not older (at the same position, it is replaced if its format differs).
        """

    def read_snapshots(self, shards: Sequence[Shard]) -> Mapping[Shard, Snapshot]:
        """Return the snapshots of those shards that have one, in one round trip."""

    def archived(self) -> tuple[Position, Position]:
        """Return two positions: the last one that is archived, and the last one that was trimmed from the stream."""

    def mark_archived(self, keeper: Shard, token: str, upto: Position) -> bool:
        """Record that all entries up to a position are in archive files on disk. Returns False if the keeper's token is
        stale.
        """

    def trim(self, keeper: Shard, token: str, upto: Position, holding: Sequence[Shard]) -> int | Fenced:
        """Remove entries up to a position, but never past the archived position or the lowest cursor or snapshot
        position of the shards in `holding`. Returns the number of removed entries; Fenced if the keeper's token is
        stale.
        """

    def sizes(self) -> Mapping[str, int]:
        """Return sizes for metrics: number of log entries, number of dead letters, the log's size in bytes, and the
        milliseconds of the log's first and last positions.
        """

    def close(self) -> None:
        """Close all connections."""
