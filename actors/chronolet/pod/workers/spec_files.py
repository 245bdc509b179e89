"""What of a pod is kept beside the log, for the day that the log is lost.

Comes in: a pod's effects. Goes out: writes to `ports.specs`. Next: `node.adoption` reads what was written.
"""

from __future__ import annotations

import structlog

from chronolet.kernel.kind import EffectContext, Worker
from chronolet.pod.wanted import PodEffect
from chronolet.ports.pods.specs import SpecRefusal, Specs
from chronolet_schemas.envelope import Signal

log = structlog.get_logger("chronolet.pod")


def keeping_the_end(specs: Specs, worker: Worker) -> Worker:
    """The worker, which begins by writing down that the pod's end has begun, if it has: what is stopped for that is not
    to be started again by a log that knows nothing of it.
    """

    def run(effect: PodEffect, context: EffectContext) -> Signal | None:
        if effect.ending is not None:
            context.fence("spec.end")
            try:
                specs.end(effect.uid, effect.ending)
            except SpecRefusal as refusal:
                # A full disk keeps no pod from ending; it would only come back if the log were lost now.
                log.warning("the end of a pod is not kept", pod=effect.pod, error=str(refusal))
            context.done("spec.end")
        return worker(effect, context)

    return run
