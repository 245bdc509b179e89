"""Effect workers of the image collector: list images, and remove one.

Input: effects from `wanted`. Output: calls to the runtime; signals. Next: `decider`. Source:
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

_SCAN_SECONDS = 300.0
_REMOVE_SECONDS = 300.0


class Collecting(Struct, frozen=True):
    """The workers of the image collector. Periods are in seconds.

    Scans and removals exclude each other. Otherwise a scan could report an image that was removed during the scan.
    """

    inventory: Inventory
    usage_seconds: float
    period_seconds: float
    turn: threading.Lock = field(default_factory=threading.Lock)

    def effects(self) -> Mapping[type[Effect], Job]:
        """Return the workers of the one-shot effects."""
        return {wanted.Look: Job(self.scan, _SCAN_SECONDS), wanted.RemoveImage: Job(self.remove, _REMOVE_SECONDS)}

    def standing(self) -> Mapping[type[Effect], Job]:
        """Return the workers of the standing effects."""
        return {wanted.WatchImages: Job(self.watch), wanted.LookPeriodically: Job(self.collect)}

    def watch(self, _effect: wanted.WatchImages, context: EffectContext) -> None:
        """List images and their users immediately, and again after each `usage_seconds`."""
        looked_before = 0
        while not context.cancelled.is_set():
            began = time.time_ns() // 1_000_000
            with self.turn:
                found = self.inventory.scan(with_disk=False, looked_before=looked_before, fence=context.fence)
                context.send(found)
            if found.error:
                log.warning("cannot list images", error=found.error)
            else:
                looked_before = began
            context.cancelled.wait(self.usage_seconds)

    def collect(self, _effect: wanted.LookPeriodically, context: EffectContext) -> None:
        """List the images and read the disk usage, immediately and then `period_seconds` after each scan; each scan may
        start a run.
        """
        while not context.cancelled.is_set():
            with self.turn:
                context.send(self.inventory.scan(with_disk=True, fence=context.fence))
            context.cancelled.wait(self.period_seconds)

    def scan(self, effect: wanted.Look, context: EffectContext) -> Signal:
        """Scan once, including the disk usage."""
        return self.inventory.scan(effect.subject, effect.intent, with_disk=True, fence=context.fence)

    def remove(self, effect: wanted.RemoveImage, context: EffectContext) -> Signal:
        """Remove one image. Idempotent: an image that no longer exists, no matter who removed it, counts as removed."""
        try:
            with self.turn:
                context.fence("docker.remove_image")
                self.inventory.images.remove(effect.id)
        except Refusal as refusal:
            return signals.RemovalRefused(subject=effect.subject, intent=effect.intent, error=str(refusal))
        context.done("docker.remove_image")
        return signals.RemovalDone(subject=effect.subject, intent=effect.intent)
