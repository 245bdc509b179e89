"""Decides whether a probe attempt is retried immediately. Pure.

Input: the attempt's result and number. Output: a bool. Next: `worker`. Source: pkg/kubelet/prober/prober.go
(runProbeWithRetries): only an error of the probe itself is retried, never a failure.
"""

from __future__ import annotations

from chronolet_schemas.prober import Outcome

MOST_ATTEMPTS = 3


def should_retry(result: Outcome, attempt: int) -> bool:
    """Whether another attempt follows attempt number `attempt`, counted from 1."""
    return result == "error" and attempt < MOST_ATTEMPTS
