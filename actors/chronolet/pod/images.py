"""Images, as a pod's containers need them: found on the node or fetched.

Comes in: `wanted.EnsureImage`. Goes out: calls to the runtime; `PullBegan` and one of `ImagePresent`, `ImageRefused`.
Next: `decider`. Answers to pkg/kubelet/images/image_manager.go.
"""

from __future__ import annotations

import time
from typing import Literal

from chronolet.kernel.kind import EffectContext, Job
from chronolet.pod import signals, wanted
from chronolet.ports.fenced import FencedRuntime
from chronolet.ports.runtime import ImageState, Refusal, Runtime
from chronolet_schemas.envelope import Signal

Reason = Literal["ErrImagePull", "ErrImageNeverPull", "InvalidImageName"]

_PULL_SECONDS = 3600.0


def job(runtime: Runtime) -> Job:
    """The worker of EnsureImage. A lane for each image: nothing but the same image waits for pulls that hang."""
    return Job(ImageWorker(runtime).ensure, _PULL_SECONDS, lane=lambda effect: f"image {effect.image}")


class ImageWorker:
    """The one method is the effect; no state of its own."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def ensure(self, effect: wanted.EnsureImage, context: EffectContext) -> Signal:
        """See that the image is there, by its pull policy."""
        runtime = FencedRuntime(self._runtime, context)
        try:
            return self._image(runtime, effect, context)
        except Refusal as refusal:
            if refusal.kind == "invalid":
                name = effect.image
                said = f'Failed to apply default image tag "{name}": couldn\'t parse image name "{name}": {refusal}'
                return _refused(effect, "InvalidImageName", said)
            return _refused(effect, "ErrImagePull", str(refusal))

    def _image(self, runtime: FencedRuntime, effect: wanted.EnsureImage, context: EffectContext) -> Signal:
        if effect.policy != "Always" and (there := runtime.image(effect.image)) is not None:
            return _present(effect, there)
        if effect.policy == "Never":
            said = f'Container image "{effect.image}" is not present with pull policy of Never'
            return _refused(effect, "ErrImageNeverPull", said)
        context.send(signals.PullBegan(subject=effect.subject, intent=effect.intent))
        began = time.monotonic()

        def stop_if_cancelled(_: str) -> None:
            if context.cancelled.is_set():
                raise Refusal("failed", f"{effect.image}: no longer wanted")

        pulled = runtime.pull(effect.image, stop_if_cancelled)
        return _present(effect, pulled, seconds=time.monotonic() - began)


def _present(effect: wanted.EnsureImage, image: ImageState, *, seconds: float | None = None) -> Signal:
    return signals.ImagePresent(
        subject=effect.subject,
        intent=effect.intent,
        image_id=image.id,
        pulled=seconds is not None,
        milliseconds=round((seconds or 0.0) * 1000),
        size_bytes=image.size_bytes,
    )


def _refused(effect: wanted.EnsureImage, reason: Reason, message: str) -> Signal:
    return signals.ImageRefused(subject=effect.subject, intent=effect.intent, reason=reason, message=message)
