"""Events of the actor machinery itself. Their entity is `shard/<kind>[/<index>]` or `node/<name>`.

No decider folds them, except the keeper, which folds those about the disk reserve.
"""

from __future__ import annotations

from typing import Any, Literal

from chronolet_schemas.envelope import Event
from chronolet_schemas.registry import registered


@registered
class LogStarted(Event, frozen=True, kw_only=True):
    """The log's first event: the run, which names the archive folder, and the shard count with which each kind begins.

    `KindResharded` changes a count, `KindAdded` adds a kind.
    """

    run: str
    node: str
    shards: dict[str, int]


@registered
class ProcessStarted(Event, frozen=True, kw_only=True):
    """A process begins to take part in the node, before it decides anything: what its decisions depend on besides the
    log. Settings change only with a restart, so that the next such event shows the change.

    After a lost reply of the server, the event may be there twice.
    """

    process: str
    """The process's id, as in the tokens of the shards that it owns."""
    version: str = ""
    """The installed release; empty if the agent runs from a checkout."""
    kinds: list[str]
    """The actor kinds that the process can host."""
    settings: dict[str, Any]
    """All settings by name, without passwords: of URLs, only scheme and server are kept. Durations are milliseconds."""
    settings_digest: str
    """SHA-256 of the settings as JSON with sorted keys, in hexadecimal."""
    machine_id: str = ""
    architecture: str = ""
    """The machine's architecture as the kernel names it, such as `x86_64`."""
    boot_id: str = ""
    engine_id: str = ""
    """The id and the root folder of the engine; empty if it had not answered yet."""
    engine_root: str = ""


@registered
class SiteRecorded(Event, frozen=True, kw_only=True):
    """The node lives on this machine and this engine: only there may actors touch it.

    Written once by the first process that hosts `pleg`, and again by each `chronolet node move`; then `former_...` name
    the site that was given up (empty in the first record). The engine is identified by its id (empty if it has none)
    and its root folder, because two engines of one machine may report the same id.
    """

    node: str
    machine_id: str
    engine_id: str
    engine_root: str
    former_machine_id: str = ""
    former_engine_id: str = ""
    former_engine_root: str = ""


@registered
class KindResharded(Event, frozen=True, kw_only=True):
    """A kind has another number of shards from here on. Its entities keep their states: only their owners change."""

    kind: str
    before: int
    after: int
    cursors: list[str]
    """For each former shard, the position up to which it had decided the log."""
    moved_commands: int
    """Number of waiting commands that were moved to the mailboxes of the new shards."""


@registered
class KindAdded(Event, frozen=True, kw_only=True):
    """The log has a kind that its first event does not name. The kind's shards begin with the log's first entry."""

    kind: str
    shards: int


@registered
class MessageDeadLettered(Event, frozen=True, kw_only=True):
    """A message failed three times, or an effect crashed the process three times; a copy was sent to the dead-letter
    stream.
    """

    message: str
    """Type name of the message."""
    source: Literal["log", "mailbox", "signal"]
    at: str
    """The message's position in the log, its request id, or the subject of the signal."""
    tries: int
    error: str


@registered
class EntryQuarantined(Event, frozen=True, kw_only=True):
    """An entry of the log or a mailbox cannot be decoded; it was skipped and copied to the dead-letter stream."""

    message: str
    source: Literal["log", "mailbox"]
    at: str
    error: str


@registered
class TailLost(Event, frozen=True, kw_only=True):
    """The server lacks commits of this shard's owner, which reloaded its state from the server."""

    had_version: int
    found_version: int


@registered
class LogLost(Event, frozen=True, kw_only=True):
    """The server lacks entries that the state folder remembers: a whole former log, or the newest entries of this one.

    Running containers were not touched; those unknown to the log are adopted.
    """

    node: str
    former_run: str
    """The run whose entries are missing: a former one, or the current one."""
    had: str
    """The position of the last remembered entry."""
    found: str
    """The position of the last entry found; `0-0` if the whole log was missing."""
    entries: int
    """Number of entries known to be missing."""


@registered
class ClockJumped(Event, frozen=True, kw_only=True):
    """Wall clock and monotonic clock diverged by more than a second. `by_milliseconds` is positive if the wall clock
    moved forward.
    """

    by_milliseconds: int


@registered
class ShardTakenOver(Event, frozen=True, kw_only=True):
    """A shard has a new owner. `proof` says why it was free: its former owner released it, lost its lease, or is dead
    according to its lock.
    """

    former_owner: str
    owner: str
    proof: Literal["released", "lease", "lock"]


@registered
class ShardReleased(Event, frozen=True, kw_only=True):
    """The shard's owner hands it over: this is its last step. `to`: the process that will take the shard."""

    to: str


@registered
class HostRestarted(Event, frozen=True, kw_only=True):
    """A host failed; its supervisor restarted it, and it replayed the log."""

    error: str
    restarts: int
    """Number of restarts since the host last ran for a minute."""


@registered
class EffectsFailing(Event, frozen=True, kw_only=True):
    """A standing effect ended or failed, and is restarted with back-off."""

    effect: str
    about: str
    error: str
    retry_in_milliseconds: int

    def subject(self) -> str:
        return self.about


@registered
class BallastGivenUp(Event, frozen=True, kw_only=True):
    """The disk with the state folder was full: the disk reserve's file was deleted so that the log can grow."""

    freed_bytes: int
    error: str


@registered
class BallastRestored(Event, frozen=True, kw_only=True):
    """Space is available again: the disk reserve's file was recreated."""

    size_bytes: int
