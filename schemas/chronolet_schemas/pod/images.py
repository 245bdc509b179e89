"""The images that a pod's containers need. Source: pkg/kubelet/images/image_manager.go."""

from __future__ import annotations

from chronolet_schemas.pod.base import ContainerEvent
from chronolet_schemas.registry import registered


@registered
class ImageEnsureRequested(ContainerEvent, frozen=True, kw_only=True):
    """Intent: see that the image is there, by the pull policy."""

    image: str
    policy: str


@registered
class ImagePullProgress(ContainerEvent, frozen=True, kw_only=True):
    """So much of the image has come, of the layers that are known so far; at most one in five seconds."""

    image: str
    done_bytes: int
    total_bytes: int


@registered
class ImageReady(ContainerEvent, frozen=True, kw_only=True):
    """The image is there. `pulled` says whether it was fetched for this, and then how long that took, after what wait.

    `digest` is by what name its registry knows it (`host/path@sha256:...`), empty for one that no registry has.
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
    """The image cannot be had. `reason` is ErrImagePull, RegistryUnavailable, ErrImageNeverPull or InvalidImageName.

    `failures` counts in a row. The wait for `retry_at` begins at `waits_from`.
    """

    image: str
    reason: str
    message: str
    failures: int
    waits_from: int
    retry_at: int


@registered
class ImageBackOffBegan(ContainerEvent, frozen=True, kw_only=True):
    """The container waits for the next try of its image (ImagePullBackOff) until `retry_at`.

    `tell_again_at`: see BackOffContinued.
    """

    image: str
    retry_at: int
    tell_again_at: int = 0
