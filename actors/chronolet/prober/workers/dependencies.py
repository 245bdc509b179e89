"""The dependencies of the prober's workers: adapters and the receivers of results and metrics.

Input: adapters. Output: `ProberDependencies`. Next: `probe_worker`, `effects`.
"""

from __future__ import annotations

import time
from typing import Protocol

from msgspec import Struct, field

from chronolet.ports.pods.probes import Prober
from chronolet.prober.wanted import RunProbe
from chronolet_schemas.prober import Outcome, RawResult


class Results(Protocol):
    """Sink of raw outcomes: the capped stream `probe_results`."""

    def add(self, result: RawResult) -> None:
        """Add one outcome. Thread-safe; does not block."""


class Figures(Protocol):
    """Receiver of the probes' metrics. Thread-safe; must not block."""

    def begins(self, probe: RunProbe) -> None:
        """Record that a probe's worker starts. Called on its host's thread, in order with the host's steps."""

    def began(self, probe: RunProbe, late_seconds: float) -> None:
        """Record that a probe has begun, `late_seconds` after its scheduled time."""

    def probed(self, probe: RunProbe, result: Outcome, seconds: float) -> None:
        """Record that a probe has ended, after all its attempts, which took `seconds`."""


class ProberDependencies(Struct, frozen=True):
    """The dependencies that all workers of a process share.

    `unjudged_limit` (milliseconds): how long time-outs that a stall explains stay unjudged. If it is None, every
    time-out counts and no kill is held back, as in the kubelet.
    """

    prober: Prober
    results: Results
    figures: Figures
    began: float = field(default_factory=time.monotonic)
    """When the process began to probe, in seconds of `time.monotonic`."""
    unjudged_limit: int | None = None
