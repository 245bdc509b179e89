"""A wrapper around the runtime's image calls that counts and times them under the kubelet's operation names.

Input: calls from the image collector. Output: the same calls to the runtime's adapter. Next: `metrics`. Source:
pkg/kubelet/kuberuntime/instrumented_services.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet.node.metrics.metrics import Metrics
from chronolet.ports.runtime.images import DiskState, HeldImage, Images


class MeasuredImages:
    """Implements `ports.runtime.images.Images`: forwards all calls to `images` and records metrics."""

    def __init__(self, images: Images, metrics: Metrics) -> None:
        self._images = images
        self._operation = metrics.operation

    def list(self) -> Sequence[HeldImage]:
        with self._operation("list_images"):
            return self._images.list()

    def remove(self, image_id: str) -> None:
        with self._operation("remove_image"):
            self._images.remove(image_id)

    def disk(self) -> DiskState:
        with self._operation("image_fs_info"):
            return self._images.disk()

    def close(self) -> None:
        self._images.close()
