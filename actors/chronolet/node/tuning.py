"""Numbers that no setting exposes: sizes and periods that suit every node, and that a test chooses smaller.

Comes in: nothing. Goes out: `Tuning`. Next: `wiring`, `main`.
"""

from __future__ import annotations

from typing import NamedTuple

from chronolet.keeper.effects import MEASURE_SECONDS
from chronolet.keeper.policy import Policy
from chronolet.kube_events.policy import RETRY_PAUSE


class Tuning(NamedTuple):
    """Everything has its usual value."""

    policy: Policy = Policy()
    """When the log is archived and trimmed."""
    measure_seconds: float = MEASURE_SECONDS
    """How often the log is measured."""
    ballast_bytes: int = 64 << 20
    """How much of the state folder's disk is held in reserve."""
    ballast_rest_seconds: float = 60.0
    """How long after the ballast was given up it is held again at the earliest: what made room has time to last."""
    event_pause: int = RETRY_PAUSE
    """Before a KubeEvent is tried again at a sink, in milliseconds."""


USUAL = Tuning()
