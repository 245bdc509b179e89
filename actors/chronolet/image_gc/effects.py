"""The hands of the collector of images: looking, and removing one image.

Comes in: effects of `wanted`. Goes out: calls to the runtime; signals. Next: `decider`. Source:
pkg/kubelet/images/image_gc_manager.go.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import structlog
from msgspec import Struct, field

from chronolet.image_gc import signals, wanted
from chronolet.image_gc.inventory import Inventory
from chronolet.kernel.kind import Effect, EffectContext, Job
from chronolet.ports.runtime.runtime import Refusal
from chronolet_schemas.envelope import Signal

log = structlog.get_logger("chronolet.image_gc")

_LOOK_SECONDS = 300.0
_REMOVE_SECONDS = 300.0


class Collecting(Struct, frozen=True):
    """The workers. Periods in seconds. They take turns: else a look would bring back what was removed while it was
    under way.
    """

    inventory: Inventory
    usage_seconds: float
    period_seconds: float
    turn: threading.Lock = field(default_factory=threading.Lock)

    def effects(self) -> Mapping[type[Effect], Job]:
        """The one-shots."""
        return {wanted.Look: Job(self.look, _LOOK_SECONDS), wanted.RemoveImage: Job(self.remove, _REMOVE_SECONDS)}

    def standing(self) -> Mapping[type[Effect], Job]:
        """Those that run for as long as the node lives."""
        return {wanted.WatchImages: Job(self.watch), wanted.LookPeriodically: Job(self.collect)}

    def watch(self, _effect: wanted.WatchImages, context: EffectContext) -> None:
        """Who uses what, now and every short period."""
        looked_before = 0
        while not context.cancelled.is_set():
            began = time.time_ns() // 1_000_000
            with self.turn:
                looked = self.inventory.look(with_disk=False, looked_before=looked_before, fence=context.fence)
                context.send(looked)
            if looked.error:
                log.warning("cannot look at the images", error=looked.error)
            else:
                looked_before = began
            context.cancelled.wait(self.usage_seconds)

    def collect(self, _effect: wanted.LookPeriodically, context: EffectContext) -> None:
        """What a run needs to know, now and every long period."""
        while not context.cancelled.is_set():
            with self.turn:
                context.send(self.inventory.look(with_disk=True, fence=context.fence))
            context.cancelled.wait(self.period_seconds)

    def look(self, effect: wanted.Look, context: EffectContext) -> Signal:
        """The same once."""
        return self.inventory.look(effect.subject, effect.intent, with_disk=True, fence=context.fence)

    def remove(self, effect: wanted.RemoveImage, context: EffectContext) -> Signal:
        """One image. One that is gone already went by an earlier try, or by somebody else: it is gone."""
        try:
            with self.turn:
                context.fence("docker.remove_image")
                self.inventory.images.remove(effect.id)
        except Refusal as refusal:
            return signals.RemovalRefused(subject=effect.subject, intent=effect.intent, error=str(refusal))
        context.done("docker.remove_image")
        return signals.RemovalDone(subject=effect.subject, intent=effect.intent)
