"""The worker that provides the images of a pod's containers: from the node, or pulled with registry credentials.

Input: `wanted.EnsureImage`. Output: calls to the runtime; `PullBegan`, `PullProgress` and one of `ImagePresent`,
`ImageRefused`. Next: `decider`. Source: pkg/kubelet/images/image_manager.go and kuberuntime_image.go (PullImage).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from chronolet.kernel.kind import EffectContext, Job
from chronolet.pod import signals, wanted
from chronolet.pod.workers.images.pulling import Bytes, Turns, Watch
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.registries import Found, Keyring
from chronolet.ports.runtime.runtime import ImageState, Refusal, Runtime
from chronolet.ports.spans import NoSpans, Spans
from chronolet.rules.names import image_names
from chronolet.rules.names.durations import go_duration
from chronolet.rules.names.image_names import ImageName
from chronolet.rules.names.registry_keys import Credential
from chronolet_schemas.envelope import Signal

Reason = Literal["ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable"]

_LONGEST_SECONDS = 24 * 3600.0  # a pull may wait in the queue, and is aborted if it stalls
_SILENCE_SECONDS = 30.0
"""How much longer than `patience_seconds` the runtime's own time-out is, so that the watch detects a stall first."""
_UNAVAILABLE = tuple(f"unexpected HTTP status: {status}" for status in (502, 503, 504))
"""The engine's messages when the registry or its proxy is temporarily unavailable."""


class Pulls(Struct, frozen=True):
    """How images are pulled. `keyring`: registry credentials. `concurrency`: limit on concurrent pulls; None means no
    limit. `patience_seconds`: how long a pull may go without progress, measured with `clock`.
    """

    keyring: Keyring
    concurrency: int | None = 1
    patience_seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic


def job(runtime: Runtime, pulls: Pulls, spans: Spans | None = None) -> Job:
    """Return the job of EnsureImage. Each image has its own lane, so that a stuck pull delays only the same image."""
    return Job(ImageWorker(runtime, pulls, spans).ensure, _LONGEST_SECONDS, lane=lambda effect: f"image {effect.image}")


class ImageWorker:
    """The worker of EnsureImage; holds the queue of the process's pulls."""

    def __init__(self, runtime: Runtime, pulls: Pulls, spans: Spans | None = None) -> None:
        self._spans = spans or NoSpans()
        self._runtime = runtime
        self._keyring = pulls.keyring
        self._patience = pulls.patience_seconds
        self._clock = pulls.clock
        self._turns = Turns(pulls.concurrency)

    def ensure(self, effect: wanted.EnsureImage, context: EffectContext) -> Signal:
        """Ensure that the image is present, according to its pull policy."""
        try:
            name = image_names.parsed(effect.image)
        except image_names.BadImageName as error:
            image = effect.image
            message = f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {error}'
            return _refused(effect, "InvalidImageName", message)
        runtime = FencedRuntime(self._runtime, context, self._spans)
        try:
            return self._image(runtime, effect, name, context)
        except Refusal as refusal:
            error_text = str(refusal)
            if any(marker in error_text for marker in _UNAVAILABLE):
                message = f"image pull failed for {effect.image} because the registry is unavailable: {error_text}"
                return _refused(effect, "RegistryUnavailable", message)
            return _refused(effect, "ErrImagePull", error_text)

    def _image(
        self, runtime: FencedRuntime, effect: wanted.EnsureImage, name: ImageName, context: EffectContext
    ) -> Signal:
        if effect.policy != "Always" and (present := runtime.image(effect.image)) is not None:
            return _present(effect, name, present)
        if effect.policy == "Never":
            message = f'Container image "{effect.image}" is not present with pull policy of Never'
            return _refused(effect, "ErrImageNeverPull", message)
        found = self._keyring.find(name, [one.digest for one in effect.secrets])
        lost = tuple(one.name for one in effect.secrets if one.digest in found.lost)
        context.send(signals.PullBegan(subject=effect.subject, intent=effect.intent, lost=lost))
        queued = time.monotonic()
        with self._turns.turn(context, effect.image, self._spans):
            # Another effect may have pulled the image while this one was queued.
            if effect.policy != "Always" and (present := runtime.image(effect.image)) is not None:
                return _present(effect, name, present)
            began = time.monotonic()
            pulled = self._pulled(runtime, effect, found, context)
            return _present(
                effect,
                name,
                pulled,
                pulled=True,
                milliseconds=round((time.monotonic() - began) * 1000),
                waited_milliseconds=round((began - queued) * 1000),
            )

    def _pulled(
        self, runtime: FencedRuntime, effect: wanted.EnsureImage, found: Found, context: EffectContext
    ) -> ImageState:
        """Pull with each credential in turn, or anonymously if there is none. If all fail, raises one Refusal with all
        messages; a pull that times out is the last one.
        """
        refusals: dict[str, Refusal] = {}
        for credential in found.credentials or (None,):
            try:
                return self._pull(runtime, effect, credential, context)
            except Refusal as refusal:
                refusals[str(refusal)] = refusal
                if refusal.kind == "timeout":
                    break
        texts = list(refusals)
        message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        denied = any(refusal.kind == "denied" for refusal in refusals.values())
        remarks = f" ({'; '.join(found.remarks)})" if found.remarks and denied else ""
        raise Refusal(next(iter(refusals.values())).kind, message + remarks)

    def _pull(
        self,
        runtime: FencedRuntime,
        effect: wanted.EnsureImage,
        credential: Credential | None,
        context: EffectContext,
    ) -> ImageState:
        def report(size: Bytes) -> None:
            progress = signals.PullProgress(
                subject=effect.subject, intent=effect.intent, done_bytes=size.done, total_bytes=size.total
            )
            context.send(progress)

        watch = Watch(context, self._patience, report, self._clock)
        try:
            with watch.running():
                return runtime.pull(
                    effect.image,
                    watch.step,
                    credential=credential,
                    opened=watch.opened,
                    silence_seconds=self._patience + _SILENCE_SECONDS,
                )
        except Refusal as refusal:
            if context.cancelled.is_set():
                context.fence("docker.pull")  # raises: the kernel no longer wants a result
            if not watch.stalled:
                raise
            waited = go_duration(round(self._patience * 1000))
            stalled = f'pull of image "{effect.image}" was given up because of no progress for {waited}'
            raise Refusal("timeout", f'{stalled}, latest progress: "{watch.last}"') from refusal


def fetch(runtime: FencedRuntime, keyring: Keyring, reference: str) -> ImageState:
    """Pull an image for the node itself, with the node's credentials in turn, as long as the registry denies them, then
    anonymously.

    Raises Refusal.
    """
    try:
        name = image_names.parsed(reference)
    except image_names.BadImageName as error:
        raise Refusal("invalid", f"{reference}: {error}") from error
    for credential in keyring.find(name, ()).credentials:
        try:
            return runtime.pull(reference, credential=credential)
        except Refusal as refusal:
            if refusal.kind != "denied":
                raise
    return runtime.pull(reference)


def _present(effect: wanted.EnsureImage, name: ImageName, image: ImageState, **pull: Any) -> Signal:
    return signals.ImagePresent(
        subject=effect.subject,
        intent=effect.intent,
        image_id=image.id,
        digest=_digest(name, image),
        size_bytes=image.size_bytes,
        **{"pulled": False, **pull},
    )


def _digest(name: ImageName, image: ImageState) -> str:
    """Return the image's registry digest, preferably in the requested repository; empty if it has none."""
    for one in image.digests:
        try:
            if image_names.parsed(one).repository == name.repository:
                return one
        except image_names.BadImageName:
            continue
    return image.digests[0] if image.digests else ""


def _refused(effect: wanted.EnsureImage, reason: Reason, message: str) -> Signal:
    return signals.ImageRefused(subject=effect.subject, intent=effect.intent, reason=reason, message=message)
