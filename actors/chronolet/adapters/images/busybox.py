"""Build images from Debian's static busybox, so that pods run on machines without access to a registry.

Input: the busybox binary. Output: a root file system as tar bytes, and the settings for importing it into Docker. No
clock is read, so the same busybox always yields the same bytes. Next: `scripts/images`, the tests' fixtures, and
`builtin` if the default pause image is missing. The pause image corresponds to build/pause/linux/pause.c: it holds the
pod's namespaces, exits with 0 on TERM and INT, and reaps orphaned processes.
"""

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

_ELF_INTERPRETER = b"/ld-linux"

# `wait` returns as soon as a signal arrives, and a shell reaps orphaned processes.
_HOLD = 'trap "exit 0" TERM INT; while :; do sleep 2147483647 & wait $!; done'


class LocalImage(msgspec.Struct, frozen=True, kw_only=True):
    """Name, tag and default command of a local image."""

    repository: str
    tag: str
    cmd: tuple[str, ...]

    @property
    def reference(self) -> str:
        return f"{self.repository}:{self.tag}"

    @property
    def changes(self) -> list[str]:
        """The Dockerfile instructions for `docker import`."""
        return [f"CMD {json.dumps(self.cmd)}", "ENV PATH=/bin"]


PAUSE = LocalImage(repository="chronolet/pause", tag="1", cmd=("/bin/sh", "-c", _HOLD))
BUSYBOX = LocalImage(repository="chronolet/busybox", tag="1", cmd=("/bin/sh",))
ALL = (PAUSE, BUSYBOX)

_HANGS_SECONDS = 60
"""Time-out for `busybox --list`, which takes milliseconds on an idle machine."""


class ImageImporter(Protocol):
    """The only method of Runtime that is needed here."""

    def import_image(self, reference: str, archive: bytes, changes: Sequence[str]) -> str: ...


def busybox_path() -> Path:
    """Return the path of the busybox on PATH. Raises FileNotFoundError if there is none, or if it is linked
    dynamically, because the image would not contain its loader.
    """
    found = shutil.which("busybox")
    if found is None:
        raise FileNotFoundError("busybox: not on PATH; install the Debian package busybox-static")
    path = Path(found)
    # A dynamically linked program names its loader (PT_INTERP) right after the program headers.
    with path.open("rb") as binary:
        head = binary.read(4096)
    if _ELF_INTERPRETER in head:
        raise FileNotFoundError(f"{path}: is linked dynamically; install the Debian package busybox-static instead")
    return path


def applets(busybox: Path) -> tuple[str, ...]:
    """Return the names under which this busybox can be called."""
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True, timeout=_HANGS_SECONDS)
    return tuple(listed.stdout.split())


def root_tar(binary: bytes, names: Sequence[str]) -> bytes:
    """Return a root file system as an uncompressed tar: /bin with busybox and a link per applet, /etc with passwd and
    group, /root, /tmp and /var.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777), ("var", 0o755)):
            _add_folder(archive, folder, mode)
        _add_file(archive, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
        _add_file(archive, "etc/group", b"root:x:0:\nnogroup:x:65534:\n")
        _add_file(archive, "bin/busybox", binary, 0o755)
        for name in sorted(set(names) - {"busybox"}):
            _add_link(archive, f"bin/{name}", "busybox")
    return buffer.getvalue()


def build() -> bytes:
    """Build a root file system from this machine's busybox; the pause and busybox images contain the same files."""
    path = busybox_path()
    return root_tar(path.read_bytes(), applets(path))


def load(runtime: ImageImporter, images: Sequence[LocalImage] = ALL) -> None:
    """Import the images into a Docker Engine, replacing existing ones of the same name."""
    data = build()
    for image in images:
        runtime.import_image(image.reference, data, image.changes)


def _add_folder(archive: tarfile.TarFile, name: str, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE
    info.mode = mode
    archive.addfile(info)


def _add_file(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.mode = mode
    archive.addfile(info, io.BytesIO(content))


def _add_link(archive: tarfile.TarFile, name: str, target: str) -> None:
    # Hard links, because `docker import` preserves them and they need no inodes.
    info = tarfile.TarInfo(name)
    info.type = tarfile.LNKTYPE
    info.linkname = f"bin/{target}"
    info.mode = 0o755
    archive.addfile(info)
