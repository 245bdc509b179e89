"""The way out to the sinks.

Comes in: `wanted.Deliver`. Goes out: `signals.SinkAnswered`. Next: `decider`. Each call is fenced by the lease; a
repeat hands over the same posts again, which a sink knows by their names and counts.
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
"""After so long the rest of the posts is left for another time: what was done is to be known."""
LONGEST_SECONDS = 60.0


class Delivery(Struct, frozen=True):
    """To these sinks, by name."""

    sinks: Mapping[str, Sink]

    def deliver(self, effect: wanted.Deliver, context: EffectContext) -> signals.SinkAnswered:
        """Hand over posts until all are settled, one fails, or it has taken long."""
        outcome = Outcome(failure="the agent was not told how to reach it")
        if effect.sink in self.sinks:
            outcome = _handed(self.sinks[effect.sink], effect, context)
        return signals.SinkAnswered(
            subject=effect.subject,
            intent=effect.intent,
            delivered=outcome.delivered,
            refused=tuple(signals.Refused(name=name, error=error) for name, error in outcome.refused),
            failure=outcome.failure,
            known=outcome.known,
        )


def _handed(sink: Sink, effect: wanted.Deliver, context: EffectContext) -> Outcome:
    until, outcome = time.monotonic() + ENOUGH_SECONDS, Outcome()
    posts = iter(effect.posts)
    while some := list(itertools.islice(posts, sink.at_once)):
        context.fence("sink.deliver")
        outcome = outcome.and_then(sink.deliver(some))
        context.done("sink.deliver")
        if outcome.failure or time.monotonic() > until:
            break
    return outcome


def jobs(sinks: Mapping[str, Sink]) -> Mapping[type[Effect], Job]:
    """The effects of the kube_events kind. A sink that is slow keeps no other waiting."""
    return {wanted.Deliver: Job(Delivery(sinks).deliver, LONGEST_SECONDS, lane=lambda effect: effect.sink)}
