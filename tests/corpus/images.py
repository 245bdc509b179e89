"""Small images that replace those named in the manifests of the corpus.

Input: the root file system that the product builds, a Docker client. Output: images that behave like the replaced ones
as far as the tests need: a server, a program whose entrypoint ignores its arguments and keeps running, a shell.
Next: `manifests` writes their names into the texts.
"""

from __future__ import annotations

import io
import json
import tarfile
from typing import Final

import docker

from chronolet.adapters.images import busybox
from tests.support.docker.images import root_file_system

SHELL: Final = busybox.BUSYBOX.reference
SERVER: Final = "corpus/server:1"
PROGRAM: Final = "corpus/program:1"

LISTENER: Final = "corpus/listener:1"
LISTENS_ON: Final = (6379, 8080)
"""The ports that probes use in containers of the replaced images; LISTENER serves on all of them."""

UNREACHABLE: Final = "localhost:1/corpus/shell"
"""An image with a shell in an unreachable registry, without its tag; the tags 1 and latest are present."""

_GOES_ON = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"
_SERVES = "; ".join(f"/bin/httpd -p {port} -h /usr/share/nginx/html" for port in LISTENS_ON)
_CHANGES: Final = {
    LISTENER: [f"ENTRYPOINT {json.dumps(['/bin/sh', '-c', f'{_SERVES}; {_GOES_ON}', 'listener'])}"],
    SERVER: ['CMD ["/bin/httpd", "-f", "-p", "80", "-h", "/usr/share/nginx/html"]'],
    PROGRAM: [f"ENTRYPOINT {json.dumps(['/bin/sh', '-c', _GOES_ON, 'program'])}"],
}
_ROOT = "usr/share/nginx/html"
_FOLDERS = ("usr", "usr/share", "usr/share/nginx", _ROOT, f"{_ROOT}/_status")
_PAGES = (f"{_ROOT}/healthz", f"{_ROOT}/_status/healthz")
"""The pages that probes request."""


def stand_in(image: str) -> str:
    """Return the image that replaces `image`."""
    name = image.rpartition("/")[2].partition(":")[0]
    if name in ("busybox", "testimage"):
        return SHELL
    if name in ("liveness", "goproxy", "redis"):
        return LISTENER
    return SERVER if name == "nginx" else PROGRAM


def load(api: docker.APIClient) -> None:
    """Import the images that the product does not build, and tag a shell image as if it had been pulled."""
    root = _with_folders(root_file_system())
    for reference, changes in _CHANGES.items():
        repository, _, tag = reference.partition(":")
        api.import_image_from_data(root, repository=repository, tag=tag, changes=[*changes, "ENV PATH=/bin"])
    for tag in ("1", "latest"):
        assert api.tag(SHELL, UNREACHABLE, tag)


def _with_folders(root: bytes) -> bytes:
    buffer = io.BytesIO(root)
    with tarfile.open(fileobj=buffer, mode="a") as archive:
        for name in _FOLDERS:
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(info)
        for name in _PAGES:
            archive.addfile(tarfile.TarInfo(name))
    return buffer.getvalue()
