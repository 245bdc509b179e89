"""Constants that are not settings: sizes and periods that suit every node. Tests use smaller values.

Input: none. Output: `Tuning`. Next: `wiring`, `main`.
"""

from __future__ import annotations

from typing import NamedTuple

from chronolet.adapters.kube_sinks.calls import CALL_SECONDS
from chronolet.adapters.probes.results.segment_writer import SEGMENT_SECONDS
from chronolet.keeper.effects import MEASURE_SECONDS
from chronolet.keeper.policy import Policy
from chronolet.kernel.ownership.lease import TTL_MILLISECONDS
from chronolet.kernel.timing import Timing
from chronolet.kube_events.policy import RETRY_PAUSE


class Tuning(NamedTuple):
    """Sizes and periods; the defaults are for production."""

    policy: Policy = Policy()
    """The policy for archiving and trimming the log."""
    measure_seconds: float = MEASURE_SECONDS
    """Interval at which the log's extent is measured."""
    disk_reserve_bytes: int = 64 << 20
    """Size of the disk reserve in the state folder."""
    disk_reserve_rest_seconds: float = 60.0
    """Minimum time between releasing the disk reserve and allocating it again, so that the released space stays
    available for a while.
    """
    event_pause: int = RETRY_PAUSE
    """Delay before the delivery of a KubeEvent is retried, in milliseconds."""
    event_call_seconds: float = CALL_SECONDS
    """Time-out of a call to a sink of KubeEvents."""
    lease_milliseconds: int = TTL_MILLISECONDS
    """Time-to-live of the process's lease."""
    timing: Timing = Timing()
    """The waits, pauses and back-offs of the kernel."""
    segment_seconds: float = SEGMENT_SECONDS
    """How long the outcomes of probes are collected before they are written as a segment."""
    end_seconds: float = 1.0
    """Time limit for a clean shutdown. Other processes can recover from whatever is unfinished by then, such as the
    handover.
    """


DEFAULTS = Tuning()
