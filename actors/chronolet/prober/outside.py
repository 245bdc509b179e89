"""What workers of the prober reach the world by, and whom they tell of it.

Comes in: adapters. Goes out: one record. Next: `worker`, `effects`.
"""

from __future__ import annotations

import time
from typing import Protocol

from msgspec import Struct, field

from chronolet.ports.pods.probes import Prober
from chronolet.prober.wanted import RunProbe
from chronolet_schemas.prober import Outcome, RawResult


class Results(Protocol):
    """Where raw outcomes go: the capped stream `probe_results`."""

    def add(self, result: RawResult) -> None:
        """From any thread; does not wait."""


class Figures(Protocol):
    """Who counts. From any thread; must not wait."""

    def begins(self, probe: RunProbe) -> None:
        """Its worker begins. On the thread of its host, in order with the steps of that."""

    def began(self, probe: RunProbe, late_seconds: float) -> None:
        """A probe has begun, so long after its time."""

    def probed(self, probe: RunProbe, result: Outcome, seconds: float) -> None:
        """A probe has ended, after all tries."""


class Outside(Struct, frozen=True):
    """Of one process. `unjudged_limit` (milliseconds): for so long a time-out that a stall explains is not judged; None
    where every time-out is, as by the kubelet, and no kill waits.
    """

    prober: Prober
    results: Results
    figures: Figures
    began: float = field(default_factory=time.monotonic)
    """When the process began to probe, by `time.monotonic`."""
    unjudged_limit: int | None = None
