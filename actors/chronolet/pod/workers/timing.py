"""How long the workers of a pod wait.

Input: none; production uses the defaults. Output: `Timing`. Next: `dependencies` passes it to the workers.
"""

from __future__ import annotations

from msgspec import Struct

from chronolet.pod.planning import termination


class Timing(Struct, frozen=True, kw_only=True):
    """How long the workers of a pod wait, in seconds."""

    restart_patience_seconds: float = 5.0
    """How long a start waits for an engine that has become unavailable. An engine that restarts while its containers
    keep running is available again by then; otherwise the start fails as unavailable."""
    minimum_grace_seconds: float = termination.MINIMUM_GRACE_SECONDS
    """Minimum time between the stop signal and KILL, even after the deadline."""
    after_kill_seconds: float = 20.0
    """How long a container may keep running after KILL before the stop fails."""
