"""Mount a part of a volume without ever leaving the volume.

Input: a volume's folder and a path in it, both of which containers may change at any moment. Output: a mount point that
shows this part. Next: `mounts`. Corresponds to pkg/volume/util/subpath/subpath_linux.go.

The kernel resolves the path beneath the volume: a symbolic link, a `..` or a change at the wrong moment can cause an
error, but can never lead outside. The result is mounted by its descriptor at a path that no container can reach, and
the runtime is given that path.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from contextlib import ExitStack
from pathlib import Path

from chronolet.adapters.volumes import mounts

_OPENAT2 = 437  # system call number, the same on all architectures
_NO_MAGICLINKS = 0x02
_BENEATH = 0x08
_OPEN_HOW = struct.Struct("=QQQ")  # flags, mode, resolve
_PLACES_MODE = 0o750
_PERMISSIONS = 0o7777
_KINDS = (
    (stat.S_ISFIFO, "FIFO"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "character device"),
    (stat.S_ISBLK, "block device"),
)

_libc = ctypes.CDLL(None, use_errno=True)


class Escapes(Exception):  # noqa: N818 - a result
    """The path leads out of its volume."""


class Special(Exception):  # noqa: N818 - a result
    """The path is neither a folder nor a regular file. The message names its type."""


def shown(volume: Path, path: str, place: Path, *, special: bool) -> None:
    """Ensure that `place` shows the part `path` of `volume`; if the part is missing, it is created as a folder.
    `special`: whether FIFOs, sockets and devices are allowed.

    Raises Escapes, Special, OSError.
    """
    with ExitStack() as opened:
        base = _kept(opened, os.open(volume, os.O_PATH | os.O_CLOEXEC))
        part = _part(opened, base, path)
        # The file that is checked here is the file that is mounted below, because both use the same descriptor.
        if not special and (kind := _special(os.fstat(part).st_mode)):
            raise Special(kind)
        if mounts.is_mounted(place):
            if _same(place.stat(), os.fstat(part)):
                return
            mounts.unmount(place)
        _prepare(place, stat.S_ISDIR(os.fstat(part).st_mode))
        mounts.bind(part, place)


def _part(opened: ExitStack, base: int, path: str) -> int:
    """Return a descriptor of the part. Missing folders are created one by one with the volume's permissions."""
    mode = os.fstat(base).st_mode & _PERMISSIONS
    names = [name for name in path.split("/") if name not in ("", ".")]
    current = base
    for count, name in enumerate(names, start=1):
        walked = "/".join(names[:count])
        try:
            current = _kept(opened, _open_beneath(base, walked))
        except FileNotFoundError:
            os.mkdir(name, mode, dir_fd=current)
            made = _kept(opened, os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current))
            os.fchmod(made, mode)  # mkdir applies the umask
            current = _kept(opened, _open_beneath(base, walked))
    return current


def _special(mode: int) -> str:
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "")


def _open_beneath(base: int, path: str) -> int:
    how = _OPEN_HOW.pack(os.O_PATH | os.O_CLOEXEC, 0, _BENEATH | _NO_MAGICLINKS)
    found = int(_libc.syscall(_OPENAT2, base, os.fsencode(path), how, len(how)))
    if found >= 0:
        return found
    number = ctypes.get_errno()
    if number == errno.ENOSYS:
        return _open_without_links(base, path)
    if number in (errno.EXDEV, errno.ELOOP):
        raise Escapes(path)
    raise OSError(number, os.strerror(number), path)


def _open_without_links(base: int, path: str) -> int:
    """Open the path without following symbolic links: a fallback for kernels before 5.6."""
    with ExitStack() as opened:
        current = base
        for name in path.split("/"):
            if name == "..":
                raise Escapes(path)
            found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            if stat.S_ISLNK(os.fstat(found).st_mode):
                os.close(found)
                raise Escapes(path)
            current = _kept(opened, found)
        return os.dup(current)


def _prepare(place: Path, folder: bool) -> None:
    place.parent.mkdir(_PLACES_MODE, parents=True, exist_ok=True)
    if place.is_dir() and not folder:
        place.rmdir()
    elif place.is_file() and folder:
        place.unlink()
    if folder:
        place.mkdir(_PLACES_MODE, exist_ok=True)
    else:
        place.touch(0o640)


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _kept(opened: ExitStack, descriptor: int) -> int:
    opened.callback(os.close, descriptor)
    return descriptor
