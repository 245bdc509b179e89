"""The local images for a test's engine, made by the product's own builder.

Input: a Docker API client. Output: `chronolet/pause:1` and `chronolet/busybox:1` in that engine; images of random
bytes.
"""

import io
import os
import tarfile
from collections.abc import Mapping, Sequence

import docker
import msgspec

from chronolet.adapters.images.busybox import ALL, BUSYBOX, PAUSE, build

__all__ = ["BUSYBOX", "PAUSE", "load_images"]

_built: list[bytes] = []


def root_file_system() -> bytes:
    """Return the root file system as a tar archive, built once per test run."""
    if not _built:
        _built.append(build())
    return _built[0]


def load_images(api: docker.APIClient) -> None:
    """Import both images."""
    for image in ALL:
        api.import_image_from_data(
            root_file_system(), repository=image.repository, tag=image.tag, changes=image.changes
        )


def small_image(
    api: docker.APIClient, names: Sequence[str], labels: Mapping[str, str] | None = None, megabytes: int = 2
) -> str:
    """Create an image with one random file, tagged with these names; return its id. It contains no program."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("blob")
        info.size = megabytes << 20
        archive.addfile(info, io.BytesIO(os.urandom(info.size)))
    changes = ['CMD ["/blob"]', *(f'LABEL {key}="{value}"' for key, value in (labels or {}).items())]
    output = api.import_image_from_data(buffer.getvalue(), changes=changes)
    image_id: str = msgspec.json.decode(output.splitlines()[-1])["status"]
    for name in names:
        repository, _, tag = name.rpartition(":")
        api.tag(image_id, repository, tag)
    return image_id
