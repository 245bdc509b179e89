"""A start that the runtime's own death cut off: looked for again as soon as the runtime is back.

Comes in: what to try, and how to find out what became of it. Goes out: what it found. Next: `sandboxes`, `containers`.

The runtime may have done what it did not live to answer. Were the start given up at once, pleg's word that it runs
would come before the answer that it failed, and be no news then; the pod would look again only at its next try.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from chronolet.kernel.kind import EffectContext
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.runtime import ContainerState, Refusal

PATIENCE_SECONDS = 5.0
"""An engine that was killed is back by then, where containers outlive it; one that is away for longer is said to be."""
_LOOK_SECONDS = 0.25


def tried_again(
    runtime: FencedRuntime,
    context: EffectContext,
    first: Callable[[], ContainerState],
    again: Callable[[], ContainerState],
) -> ContainerState:
    """What `first` gives, or `again` once the runtime, gone in the middle, is back. Raises Refusal."""
    until = time.monotonic() + PATIENCE_SECONDS
    attempt = first
    while True:
        try:
            return attempt()
        except Refusal as refusal:
            if refusal.kind != "unavailable" or not _back(runtime, context, until):
                raise
        attempt = again


def _back(runtime: FencedRuntime, context: EffectContext, until: float) -> bool:
    """Whether the runtime answers before `until`."""
    while time.monotonic() < until and not context.cancelled.wait(_LOOK_SECONDS):
        try:
            runtime.engine()
        except Refusal:
            continue
        return True
    return False
