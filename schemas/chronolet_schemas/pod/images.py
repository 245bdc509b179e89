"""The images that a pod's containers need. Source: pkg/kubelet/images/image_manager.go."""

from chronolet_schemas.pod.base import ContainerEvent
from chronolet_schemas.registry import registered


@registered
class ImageEnsureRequested(ContainerEvent, frozen=True, kw_only=True):
    """Intent: make the image available, according to the pull policy."""

    image: str
    policy: str


@registered
class ImagePullProgress(ContainerEvent, frozen=True, kw_only=True):
    """Progress of a pull, over the layers known so far; at most one event every five seconds."""

    image: str
    done_bytes: int
    total_bytes: int


@registered
class ImageReady(ContainerEvent, frozen=True, kw_only=True):
    """The image is available. `pulled`: it was pulled for this container; only then are the duration and the time in
    the queue set.

    `digest` is the image's name in its registry (`host/path@sha256:...`), empty for an image that is not from a
    registry.
    """

    image: str
    image_id: str
    digest: str = ""
    pulled: bool
    milliseconds: int = 0
    waited_milliseconds: int = 0
    size_bytes: int = 0


@registered
class ImageFailed(ContainerEvent, frozen=True, kw_only=True):
    """The image is unavailable. `reason` is ErrImagePull, RegistryUnavailable, ErrImageNeverPull or InvalidImageName.

    `failures` counts consecutive failures. The wait until `retry_at` begins at `waits_from`.
    """

    image: str
    reason: str
    message: str
    failures: int
    waits_from: int
    retry_at: int


@registered
class ImageBackOffBegan(ContainerEvent, frozen=True, kw_only=True):
    """The container waits until `retry_at` for the next attempt to pull its image (ImagePullBackOff).

    `tell_again_at`: see BackOffContinued.
    """

    image: str
    retry_at: int
    tell_again_at: int = 0
