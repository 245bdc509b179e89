"""The worker that lists the runtime's containers periodically, and whenever the event stream opens or breaks.

Input: `wanted.Relist`. Output: `signals.Relisted`, `RelistFailed`. Next: `decider`. Source:
pkg/kubelet/pleg/generic.go.
"""

from __future__ import annotations

import time

from msgspec.structs import replace

from chronolet.kernel.kind import EffectContext
from chronolet.pleg import signals, wanted
from chronolet.pleg.workers.link import Link
from chronolet.pleg.workers.listings import PATIENCE_SECONDS, Ahead, Relisting
from chronolet.ports.runtime.runtime import Refusal, Runtime

_SLICE_SECONDS = 1.0
"""How often a wait checks for cancellation."""


class Listing:
    """The worker of Relist."""

    def __init__(
        self,
        runtime: Runtime,
        node: str,
        link: Link,
        steady_seconds: float,
        threshold_seconds: float,
        *,
        ahead: Ahead | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._runtime = runtime
        self._node = node
        self._link = link
        self._steady_seconds = steady_seconds
        self._threshold = round(threshold_seconds * 1000)
        self._ahead = ahead
        self._patience_seconds = patience_seconds
        self._listed_at = 0

    def list(self, effect: wanted.Relist, context: EffectContext) -> None:
        """List until cancelled: immediately, then every period, and whenever the stream opens or breaks."""
        with Relisting(self._runtime, self._node, effect.known, self._patience_seconds) as relisting:
            opened, trusted_from = self._link.opened, time.monotonic()
            while not context.cancelled.is_set():
                self._link.relist_now.clear()
                old = time.monotonic() - trusted_from >= effect.event_driven_period_seconds
                if old or opened != self._link.opened:
                    opened, trusted_from = self._link.opened, time.monotonic()
                    relisting.distrust()
                context.fence("docker.list")
                try:
                    self._relist(relisting, context)
                except Refusal as refusal:
                    context.send(
                        signals.RelistFailed(
                            error=str(refusal),
                            last_listed_at=self._listed_at,
                            threshold_milliseconds=self._threshold,
                        )
                    )
                self._wait(context, self._steady_seconds if self._link.standing else effect.period_seconds)

    def _relist(self, relisting: Relisting, context: EffectContext) -> None:
        """Make one listing and send it, without containers whose removal was noticed in the meantime."""
        ahead = self._ahead.take() if self._ahead is not None else None
        with self._link.sending:
            if relisting.idle and ahead is None:
                self._link.destroyed.clear()
            relisting.look_up(self._link.noticed)
            self._link.noticed.clear()
        found = relisting.relisted(lambda early: self._send(early, context), ahead)
        self._listed_at = found.began_at
        self._send(found, context)

    def _send(self, found: signals.Relisted, context: EffectContext) -> None:
        with self._link.sending:
            ended = self._link.destroyed
            observed = tuple(one for one in found.observed if one.state == "removed" or one.id not in ended)
            context.send(replace(found, observed=observed))

    def _wait(self, context: EffectContext, seconds: float) -> None:
        while seconds > 0 and not context.cancelled.is_set():
            if self._link.relist_now.wait(min(seconds, _SLICE_SECONDS)):
                return
            seconds -= _SLICE_SECONDS
