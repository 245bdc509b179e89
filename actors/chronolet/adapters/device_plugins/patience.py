"""Time-outs of calls to plugins.

Input: none. Output: `Patience`. Next: `plugins`.
"""

from __future__ import annotations

import msgspec


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """Time-outs of calls to plugins, in seconds. The kubelet bounds only `connect` and `pre_start`."""

    connect: float = 10.0
    options: float = 10.0
    preferred: float = 10.0
    allocate: float = 60.0
    pre_start: float = 30.0
