"""Time-outs of calls to plugins, and check intervals of the folders in which plugins register.

Input: none. Output: `Patience`. Next: `plugins`.
"""

from __future__ import annotations

import msgspec

from chronolet.adapters.sockets.unix_sockets import DEFAULT_TIMING, Timing


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """Time-outs of calls to plugins, in seconds. The kubelet bounds only `connect` and `pre_start`. `introduce` bounds
    each call to a discovered plugin. `sockets` has the check intervals.
    """

    connect: float = 10.0
    options: float = 10.0
    preferred: float = 10.0
    allocate: float = 60.0
    pre_start: float = 30.0
    introduce: float = 5.0
    sockets: Timing = DEFAULT_TIMING
