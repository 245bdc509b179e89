"""Effects of the container collector. Input: none. Output: Effect Structs for `effects`.

Metrics and the log show the class names, so they keep the older word "look" for a scan.
"""

from __future__ import annotations

from chronolet.kernel.decider import Effect
from chronolet_schemas import container_gc


class LookPeriodically(Effect, frozen=True, kw_only=True):
    """Standing: scan the node immediately, then at regular intervals. Sends Looked; each one may start a run."""


class Look(Effect, frozen=True, kw_only=True):
    """Scan the node once, for a requested run. Result: Looked."""


class Remove(Effect, frozen=True, kw_only=True):
    """Remove one dead object. With `victim.stop`, an object whose state is uncertain is killed first; a running one is
    refused. Result: RemovalDone or RemovalRefused.
    """

    victim: container_gc.Victim
