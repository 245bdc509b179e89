"""What a supervisor is told, each notice a message of its own.

Comes in: nothing. Goes out: the messages in its pykka inbox: of timers, of its hosts, of the reader, of the lease and
of the process that it serves. Next: `supervisor`.
"""

from __future__ import annotations

from typing import NamedTuple

from chronolet.kernel.hosting.host_handle import HostHandle
from chronolet_schemas.keys import Shard


class Tick(NamedTuple):
    """A third of the lease's time has passed: a second, unless a test is in a hurry."""


class Look(NamedTuple):
    """A part of that has: see whether what others had is free. Between two ticks, for a lease runs out at any time."""


class Upkeep(NamedTuple):
    """A minute has passed: look whether the server has lost anything, and whether a snapshot or a step is due."""


class HostFailed(NamedTuple):
    """A host's thread ended with an error."""

    handle: HostHandle
    error: BaseException


class Again(NamedTuple):
    """The back-off of a failed shard is over."""

    shard: Shard


class ServerBack(NamedTuple):
    """The reader reached the server again after it could not."""


class ReaderFailed(NamedTuple):
    """The reader's thread ended with an error."""

    error: Exception


class LeaseRegained(NamedTuple):
    """The lease was renewed after it had lapsed."""


class Retire(NamedTuple):
    """Stop everything and hand over at once."""


Notice = Tick | Look | Upkeep | HostFailed | Again | ServerBack | ReaderFailed | LeaseRegained | Retire
