"""The messages that a supervisor receives.

Input: nothing. Output: the message classes of its pykka inbox. Senders: timers, its hosts, the reader, the lease and
its process. Next: `supervisor`.
"""

from __future__ import annotations

from typing import NamedTuple

from chronolet.kernel.hosting.host_handle import HostHandle
from chronolet_schemas.keys import Shard


class Tick(NamedTuple):
    """A third of the lease's time-to-live has passed: one second, unless a test shortens the lease."""


class Look(NamedTuple):
    """A fraction of a tick has passed: take over shards that have become free. Leases may expire between two ticks."""


class Upkeep(NamedTuple):
    """A minute has passed: check the server for data loss, and wake the hosts to take a due snapshot or step."""


class HostFailed(NamedTuple):
    """A host's thread ended with an error."""

    handle: HostHandle
    error: BaseException


class BackOffOver(NamedTuple):
    """The back-off of a shard is over."""

    shard: Shard


class ServerBack(NamedTuple):
    """The reader reached the server again after an outage."""


class ReaderFailed(NamedTuple):
    """The reader's thread ended with an error."""

    error: Exception


class LeaseRegained(NamedTuple):
    """The lease was renewed after it had lapsed."""


class Retire(NamedTuple):
    """Stop everything and hand over the shards."""


Notice = Tick | Look | Upkeep | HostFailed | BackOffOver | ServerBack | ReaderFailed | LeaseRegained | Retire
