"""Whether an attempt is followed by another one at once. Pure.

Comes in: what it came to, and its number. Goes out: yes or no. Next: `worker`. Source: pkg/kubelet/prober/prober.go
(runProbeWithRetries): only an error of the asking itself is tried again, never a failure.
"""

from __future__ import annotations

from chronolet_schemas.prober import Outcome

MOST_ATTEMPTS = 3


def asks_again(result: Outcome, attempt: int) -> bool:
    """After the attempt of that number, counted from 1."""
    return result == "error" and attempt < MOST_ATTEMPTS
