"""Retries a start that a crash of the runtime interrupted, as soon as the runtime is available again.

Input: the first attempt, and the retry. Output: the container's state. Next: `sandboxes`, `containers`.

The runtime may have completed the call before it crashed. If the start failed immediately, pleg's report that the
container is running would arrive before the failure and be ignored; the pod would check again only after its back-off.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from chronolet.kernel.kind import EffectContext
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.runtime import ContainerState, Refusal

_LOOK_SECONDS = 0.25


def retry_after_restart(
    runtime: FencedRuntime,
    context: EffectContext,
    first: Callable[[], ContainerState],
    again: Callable[[], ContainerState],
    patience_seconds: float,
) -> ContainerState:
    """Return the result of `first`; or that of `again`, if the runtime became unavailable and is available again within
    `patience_seconds`. Raises Refusal.
    """
    until = time.monotonic() + patience_seconds
    attempt = first
    while True:
        try:
            return attempt()
        except Refusal as refusal:
            if refusal.kind != "unavailable" or not _back(runtime, context, until):
                raise
        attempt = again


def _back(runtime: FencedRuntime, context: EffectContext, until: float) -> bool:
    """Wait until the runtime answers; return False if it has not answered by `until`, or if the effect is cancelled."""
    while time.monotonic() < until and not context.cancelled.wait(_LOOK_SECONDS):
        try:
            runtime.engine()
        except Refusal:
            continue
        return True
    return False
