"""How long plugins may take.

Comes in: nothing. Goes out: `Patience`. Next: `plugins`.
"""

from __future__ import annotations

import msgspec


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long plugins may take, in seconds. The kubelet bounds the first and the last only."""

    connect: float = 10.0
    options: float = 10.0
    preferred: float = 10.0
    allocate: float = 60.0
    pre_start: float = 30.0
