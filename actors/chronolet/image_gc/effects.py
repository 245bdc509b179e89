"""Effect workers of the collector of images: list images, and remove one.

Input: effects of `wanted`. Output: calls to the runtime; signals. Next: `decider`. Source:
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
    """The workers. Periods in seconds.

    Looks and removals exclude each other. Otherwise a look would report an image that was removed during the look.
    """

    inventory: Inventory
    usage_seconds: float
    period_seconds: float
    turn: threading.Lock = field(default_factory=threading.Lock)

    def effects(self) -> Mapping[type[Effect], Job]:
        """The one-shot effects."""
        return {wanted.Look: Job(self.look, _LOOK_SECONDS), wanted.RemoveImage: Job(self.remove, _REMOVE_SECONDS)}

    def standing(self) -> Mapping[type[Effect], Job]:
        """The standing effects."""
        return {wanted.WatchImages: Job(self.watch), wanted.LookPeriodically: Job(self.collect)}

    def watch(self, _effect: wanted.WatchImages, context: EffectContext) -> None:
        """Look at images and their users, immediately and after each short period."""
        looked_before = 0
        while not context.cancelled.is_set():
            began = time.time_ns() // 1_000_000
            with self.turn:
                looked = self.inventory.look(with_disk=False, looked_before=looked_before, fence=context.fence)
                context.send(looked)
            if looked.error:
                log.warning("cannot list images", error=looked.error)
            else:
                looked_before = began
            context.cancelled.wait(self.usage_seconds)

    def collect(self, _effect: wanted.LookPeriodically, context: EffectContext) -> None:
        """Look at images and the disk for a run, immediately and after each long period."""
        while not context.cancelled.is_set():
            with self.turn:
                context.send(self.inventory.look(with_disk=True, fence=context.fence))
            context.cancelled.wait(self.period_seconds)

    def look(self, effect: wanted.Look, context: EffectContext) -> Signal:
        """Look once, with the disk."""
        return self.inventory.look(effect.subject, effect.intent, with_disk=True, fence=context.fence)

    def remove(self, effect: wanted.RemoveImage, context: EffectContext) -> Signal:
        """Remove one image. Idempotent: an image that is already gone, by an earlier attempt or by someone else, counts
        as removed.
        """
        try:
            with self.turn:
                context.fence("docker.remove_image")
                self.inventory.images.remove(effect.id)
        except Refusal as refusal:
            return signals.RemovalRefused(subject=effect.subject, intent=effect.intent, error=str(refusal))
        context.done("docker.remove_image")
        return signals.RemovalDone(subject=effect.subject, intent=effect.intent)
