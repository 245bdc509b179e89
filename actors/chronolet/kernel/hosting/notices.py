"""The messages that a supervisor receives.

Input: nothing. Output: the message classes of a supervisor's pykka inbox. Senders: timers, hosts, the reader, the lease
and the process. Next: `supervisor`.
"""

from __future__ import annotations

from typing import NamedTuple

from chronolet.kernel.host.host_handle import HostHandle
from chronolet_schemas.keys import Shard


class Tick(NamedTuple):
    """Sent three times per time-to-live of the lease, by default once per second, and after a loss of data: store the
    position of the log's end, take over free shards and, if data was lost, reload everything.
    """


class Look(NamedTuple):
    """Sent between two ticks, more often while something is open (see `looks`): take over shards that have become free,
    and read the counters of other processes.
    """


class MembersChanged(NamedTuple):
    """Sent when the members, or what they do, may have changed (see `Keys.membership`): also when one of this machine
    has died. `awaited`: sent because another process is about to release a shard for this one.
    """

    awaited: bool = False


class Upkeep(NamedTuple):
    """Sent once a minute: check the server for data loss, wake the hosts to take a due snapshot or step, and remove the
    names and lock files of dead processes.
    """


class HostFailed(NamedTuple):
    """Sent when a host's thread has ended with an error."""

    handle: HostHandle
    error: BaseException


class HostLeft(NamedTuple):
    """Sent when a host has committed its last step, because its shard moves to another process."""

    handle: HostHandle


class Release(NamedTuple):
    """Sent to release a shard whose host has left and is stopped."""

    handle: HostHandle


class BackOffOver(NamedTuple):
    """Sent when the back-off of a shard has ended."""

    shard: Shard


class ServerBack(NamedTuple):
    """Sent when the reader has reached the server again after an outage."""


class ReaderFailed(NamedTuple):
    """Sent when the reader's thread has ended with an error."""

    error: Exception


class LeaseRegained(NamedTuple):
    """Sent when the lease is renewed after it had lapsed."""


class Retire(NamedTuple):
    """Sent to hand over the shards and stop everything."""


class RetireNow(NamedTuple):
    """Sent when the hosts had enough time to hand over their shards on shutdown."""


Notice = (
    Tick
    | Look
    | MembersChanged
    | Upkeep
    | HostFailed
    | HostLeft
    | Release
    | BackOffOver
    | ServerBack
    | ReaderFailed
    | LeaseRegained
    | Retire
    | RetireNow
)
