"""Effect worker that delivers posts to sinks.

Input: `wanted.Deliver`. Output: `signals.DeliveryResult`. Next: `decider`. The worker may make a call only while this
process's lease is valid; this is checked before each call. Delivery is at least once: a repeated delivery sends the
same posts, which a sink recognizes by their names and counts.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping

from msgspec import Struct

from chronolet.kernel.kind import Effect, EffectContext, Job
from chronolet.kube_events import signals, wanted
from chronolet.ports.kube_sinks import Outcome, Sink

ENOUGH_SECONDS = 20.0
"""Time budget of one delivery. The remaining posts wait for the next delivery, so that progress is recorded."""
LONGEST_SECONDS = 60.0


class Delivery(Struct, frozen=True):
    """Delivers posts. `sinks` maps names to sinks."""

    sinks: Mapping[str, Sink]

    def deliver(self, effect: wanted.Deliver, context: EffectContext) -> signals.DeliveryResult:
        """Deliver posts until all are settled, one fails, or the time budget is spent. Fails if this process has no
        sink of this name.
        """
        outcome = Outcome(failure="no sink of this name is configured in this process")
        if effect.sink in self.sinks:
            outcome = _delivered(self.sinks[effect.sink], effect, context)
        return signals.DeliveryResult(
            subject=effect.subject,
            intent=effect.intent,
            delivered=outcome.delivered,
            refused=tuple(signals.RejectedPost(name=name, error=error) for name, error in outcome.refused),
            failure=outcome.failure,
            known=outcome.known,
        )


def _delivered(sink: Sink, effect: wanted.Deliver, context: EffectContext) -> Outcome:
    until, outcome = time.monotonic() + ENOUGH_SECONDS, Outcome()
    posts = iter(effect.posts)
    while some := list(itertools.islice(posts, sink.batch_size)):
        context.fence("sink.deliver")
        outcome = outcome.and_then(sink.deliver(some))
        context.done("sink.deliver")
        if outcome.failure or time.monotonic() > until:
            break
    return outcome


def jobs(sinks: Mapping[str, Sink]) -> Mapping[type[Effect], Job]:
    """Return the workers of the kind's effects. Each sink has its own queue, so a slow sink delays no other sink."""
    return {wanted.Deliver: Job(Delivery(sinks).deliver, LONGEST_SECONDS, lane=lambda effect: effect.sink)}
