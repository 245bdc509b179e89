"""The local images in a test's Docker, by the product's own builder.

In: a Docker API client. Out: `chronolet/pause:1` and `chronolet/busybox:1` in that engine.
"""

from chronolet.adapters.images import ALL, BUSYBOX, PAUSE, ImageImporter, build

__all__ = ["BUSYBOX", "PAUSE", "load_images"]

_built: list[bytes] = []


def load_images(api: ImageImporter) -> None:
    """Import both images; the tar is built once a test run."""
    if not _built:
        _built.append(build())
    for image in ALL:
        api.import_image_from_data(_built[0], repository=image.repository, tag=image.tag, changes=image.changes)
