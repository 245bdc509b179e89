"""What the collector of containers wants to have running. Comes in: nothing. Goes out: Effect Structs for `effects`."""

from __future__ import annotations

from chronolet.kernel.decider import Effect
from chronolet_schemas import container_gc


class LookPeriodically(Effect, frozen=True, kw_only=True):
    """Standing: look at what there is now and after each period; sends Looked. A run follows from each look."""


class Look(Effect, frozen=True, kw_only=True):
    """Look once, for a run that was asked for. Answers: Looked."""


class Remove(Effect, frozen=True, kw_only=True):
    """Remove one dead thing, stopped first if need be. Answers: RemovalDone, RemovalRefused."""

    victim: container_gc.Victim
