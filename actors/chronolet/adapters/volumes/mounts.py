"""Mounts made by the agent: in-memory file systems and bind mounts.

Input: paths. Output: mounts in the kernel, or OSError. Next: `folders`, `subpaths`. Corresponds to k8s.io/mount-utils.
"""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

_BIND = 4096
_DETACH = 2
_NOFOLLOW = 8

_libc = ctypes.CDLL(None, use_errno=True)
_ESCAPED = re.compile(r"\\([0-7]{3})")


def memory(target: Path, size_bytes: int) -> None:
    """Mount an in-memory file system at a folder; 0 bytes means the kernel's default size."""
    _mount("tmpfs", str(target), "tmpfs", 0, f"size={size_bytes}" if size_bytes else "")


def bind(descriptor: int, target: Path) -> None:
    """Bind-mount the file behind a descriptor at `target`. Unlike a path, a descriptor cannot be made to point to
    another file in the meantime.
    """
    _mount(f"/proc/self/fd/{descriptor}", str(target), "", _BIND, "")


def unmount(target: Path) -> None:
    """Detach the mount at `target`, even if it is in use."""
    if _libc.umount2(os.fsencode(target), _DETACH | _NOFOLLOW):
        raise _error(str(target))


def below(folder: Path) -> list[Path]:
    """Return the mount points at and below a folder, most recent first."""
    resolved = str(folder.resolve())
    points = (_point(line) for line in Path("/proc/self/mountinfo").read_text().splitlines())
    found = [Path(point) for point in points if point == resolved or point.startswith(f"{resolved}/")]
    return found[::-1]


def is_mounted(target: Path) -> bool:
    """Whether something is mounted exactly at `target`."""
    return target.resolve() in below(target)


def _point(line: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), line.split()[4])


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    words = [os.fsencode(word) or None for word in (source, target, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(options) or None):
        raise _error(target)


def _error(path: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), path)
