"""Images, as a pod's containers need them: found on the node, or fetched with what their registry wants to be told.

Comes in: `wanted.EnsureImage`. Goes out: calls to the runtime; `PullBegan`, `PullProgress` and one of `ImagePresent`,
`ImageRefused`. Next: `decider`. Answers to pkg/kubelet/images/image_manager.go and kuberuntime_image.go (PullImage).
"""

from __future__ import annotations

import time
from typing import Any, Literal

from msgspec import Struct

from chronolet.kernel.kind import EffectContext, Job
from chronolet.pod import signals, wanted
from chronolet.pod.workers.pulling import Bytes, Turns, Watch
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

_LONGEST_SECONDS = 24 * 3600.0  # a pull waits for its turn, and ends by itself when nothing moves
_SILENCE_SECONDS = 30.0
"""How much longer than its patience the runtime may be silent: the watch is to say first that nothing moves."""
_UNAVAILABLE = tuple(f"unexpected HTTP status: {status}" for status in (502, 503, 504))
"""What the engine says when the registry, or what stands before it, answers that it cannot serve."""


class Pulls(Struct, frozen=True):
    """How images are fetched: what registries are told, how many pulls at once (None: any number), and for how long
    nothing may move.
    """

    keyring: Keyring
    at_once: int | None = 1
    patience_seconds: float = 60.0


def job(runtime: Runtime, pulls: Pulls, spans: Spans | None = None) -> Job:
    """The worker of EnsureImage. A lane for each image: nothing but the same image waits for pulls that hang."""
    return Job(ImageWorker(runtime, pulls, spans).ensure, _LONGEST_SECONDS, lane=lambda effect: f"image {effect.image}")


class ImageWorker:
    """The one public method is the effect."""

    def __init__(self, runtime: Runtime, pulls: Pulls, spans: Spans | None = None) -> None:
        self._spans = spans or NoSpans()
        self._runtime = runtime
        self._keyring = pulls.keyring
        self._patience = pulls.patience_seconds
        self._turns = Turns(pulls.at_once)

    def ensure(self, effect: wanted.EnsureImage, context: EffectContext) -> Signal:
        """See that the image is there, by its pull policy."""
        try:
            name = image_names.parsed(effect.image)
        except image_names.BadImageName as error:
            image = effect.image
            said = f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {error}'
            return _refused(effect, "InvalidImageName", said)
        runtime = FencedRuntime(self._runtime, context, self._spans)
        try:
            return self._image(runtime, effect, name, context)
        except Refusal as refusal:
            words = str(refusal)
            if any(marker in words for marker in _UNAVAILABLE):
                said = f"image pull failed for {effect.image} because the registry is unavailable: {words}"
                return _refused(effect, "RegistryUnavailable", said)
            return _refused(effect, "ErrImagePull", words)

    def _image(
        self, runtime: FencedRuntime, effect: wanted.EnsureImage, name: ImageName, context: EffectContext
    ) -> Signal:
        if effect.policy != "Always" and (there := runtime.image(effect.image)) is not None:
            return _present(effect, name, there)
        if effect.policy == "Never":
            said = f'Container image "{effect.image}" is not present with pull policy of Never'
            return _refused(effect, "ErrImageNeverPull", said)
        found = self._keyring.find(name, [one.digest for one in effect.secrets])
        lost = tuple(one.name for one in effect.secrets if one.digest in found.lost)
        context.send(signals.PullBegan(subject=effect.subject, intent=effect.intent, lost=lost))
        asked = time.monotonic()
        with self._turns.turn(context, effect.image, self._spans):
            # While it waited for its turn, another one may have fetched it.
            if effect.policy != "Always" and (there := runtime.image(effect.image)) is not None:
                return _present(effect, name, there)
            began = time.monotonic()
            pulled = self._pulled(runtime, effect, found, context)
            return _present(
                effect,
                name,
                pulled,
                pulled=True,
                milliseconds=round((time.monotonic() - began) * 1000),
                waited_milliseconds=round((began - asked) * 1000),
            )

    def _pulled(
        self, runtime: FencedRuntime, effect: wanted.EnsureImage, found: Found, context: EffectContext
    ) -> ImageState:
        """By each credential in turn, without any if there is none; what all of them were refused with."""
        refusals: dict[str, Refusal] = {}
        for credential in found.credentials or (None,):
            try:
                return self._pull(runtime, effect, credential, context)
            except Refusal as refusal:
                refusals[str(refusal)] = refusal
                if refusal.kind == "timeout":
                    break
        words = list(refusals)
        said = words[0] if len(words) == 1 else f"[{', '.join(words)}]"
        denied = any(refusal.kind == "denied" for refusal in refusals.values())
        remarks = f" ({'; '.join(found.remarks)})" if found.remarks and denied else ""
        raise Refusal(next(iter(refusals.values())).kind, said + remarks)

    def _pull(
        self,
        runtime: FencedRuntime,
        effect: wanted.EnsureImage,
        credential: Credential | None,
        context: EffectContext,
    ) -> ImageState:
        def tell(size: Bytes) -> None:
            progress = signals.PullProgress(
                subject=effect.subject, intent=effect.intent, done_bytes=size.done, total_bytes=size.total
            )
            context.send(progress)

        watch = Watch(context, self._patience, tell)
        try:
            with watch.standing():
                return runtime.pull(
                    effect.image,
                    watch.step,
                    credential=credential,
                    opened=watch.opened,
                    silence_seconds=self._patience + _SILENCE_SECONDS,
                )
        except Refusal as refusal:
            if context.cancelled.is_set():
                context.fence("docker.pull")  # tells the kernel, which wants no answer any more
            if not watch.stalled:
                raise
            waited = go_duration(round(self._patience * 1000))
            said = f'pull of image "{effect.image}" was given up because of no progress for {waited}'
            raise Refusal("timeout", f'{said}, latest progress: "{watch.last}"') from refusal


def fetch(runtime: FencedRuntime, keyring: Keyring, reference: str) -> ImageState:
    """An image of the node's own, with the node's own credentials: the first that do, else none. Raises Refusal."""
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
    """By what name its registry knows it: of the repository that was asked for, if it has been there."""
    for one in image.digests:
        try:
            if image_names.parsed(one).repository == name.repository:
                return one
        except image_names.BadImageName:
            continue
    return image.digests[0] if image.digests else ""


def _refused(effect: wanted.EnsureImage, reason: Reason, message: str) -> Signal:
    return signals.ImageRefused(subject=effect.subject, intent=effect.intent, reason=reason, message=message)
