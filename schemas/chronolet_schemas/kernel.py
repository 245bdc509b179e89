"""Events of the actor machinery itself. Their entity is `shard/<kind>[/<index>]` or `node/<name>`, and no decider folds
them; but for the ballast's, which are the keeper's own.
"""

from __future__ import annotations

from typing import Literal

from chronolet_schemas.envelope import Event
from chronolet_schemas.registry import registered


@registered
class LogStarted(Event, frozen=True, kw_only=True):
    """The log's first event: the run that archives are filed by, and how many shards each kind has for ever."""

    run: str
    node: str
    shards: dict[str, int]


@registered
class MessageDeadLettered(Event, frozen=True, kw_only=True):
    """A message failed three times and was sent to the dead-letter stream."""

    message: str
    """Type name of the message."""
    source: Literal["log", "mailbox", "signal"]
    at: str
    """Its position in the log, its request id, or what the signal was about."""
    tries: int
    error: str


@registered
class EntryQuarantined(Event, frozen=True, kw_only=True):
    """An entry of the log or a mailbox cannot be decoded; it was passed over and copied to the dead-letter stream."""

    message: str
    source: Literal["log", "mailbox"]
    at: str
    error: str


@registered
class TailLost(Event, frozen=True, kw_only=True):
    """The server knows less than this shard's owner had committed: it was reloaded from what the server has."""

    had_version: int
    found_version: int


@registered
class LogLost(Event, frozen=True, kw_only=True):
    """The server lacks entries that the state folder remembers: the whole of a former log, or the end of this one.

    What runs was not touched; what the log does not know of it is adopted.
    """

    node: str
    former_run: str
    """The run of the log that lost them."""
    had: str
    """The position of the last entry that is remembered."""
    found: str
    """The position of the last entry that was there; `0-0` if the whole log was gone."""
    entries: int
    """How many are known to be missing."""


@registered
class ClockJumped(Event, frozen=True, kw_only=True):
    """Wall clock and monotonic clock parted by more than a second. Positive: the wall clock went forward."""

    by_milliseconds: int


@registered
class ShardTakenOver(Event, frozen=True, kw_only=True):
    """A shard has a new owner because the former one is gone."""

    former_owner: str
    owner: str
    proof: Literal["released", "lease", "lock"]


@registered
class HostRestarted(Event, frozen=True, kw_only=True):
    """A host failed; its supervisor restarted it, and it replayed."""

    error: str
    restarts: int
    """How often in a row, since it last ran for a minute."""


@registered
class EffectsFailing(Event, frozen=True, kw_only=True):
    """A standing effect ended or failed and is started again with back-off."""

    effect: str
    about: str
    error: str
    retry_in_milliseconds: int

    def subject(self) -> str:
        return self.about


@registered
class BallastGivenUp(Event, frozen=True, kw_only=True):
    """The disk of the state folder was full: the ballast file was deleted so that the log can go on."""

    freed_bytes: int
    error: str


@registered
class BallastRestored(Event, frozen=True, kw_only=True):
    """There is room again: the ballast file was written anew."""

    size_bytes: int
