"""Records in a pod's spec file that the pod is ending, so that this is known even after a loss of the log.

Input: a pod's effects. Output: writes to `ports.pods.specs`. Next: `node.adoption` reads the files.
"""

from __future__ import annotations

import structlog

from chronolet.kernel.kind import EffectContext, Worker
from chronolet.pod.wanted import PodEffect
from chronolet.ports.pods.specs import SpecRefusal, Specs
from chronolet_schemas.envelope import Signal

log = structlog.get_logger("chronolet.pod")


def record_end_first(specs: Specs, worker: Worker) -> Worker:
    """Wrap a worker so that it first stores that the pod is ending, if it is. Otherwise a new log, which would not know
    that the pod was ending, would start the stopped containers again.
    """

    def run(effect: PodEffect, context: EffectContext) -> Signal | None:
        if effect.ending is not None:
            context.fence("spec.end")
            try:
                specs.end(effect.uid, effect.ending)
            except SpecRefusal as refusal:
                # A full disk must not keep a pod from ending. The pod comes back only if the log is lost before the pod
                # has ended.
                log.warning("cannot store that a pod is ending", pod=effect.pod, error=str(refusal))
            context.done("spec.end")
        return worker(effect, context)

    return run
