"""Measure the disk use of folder trees and their file systems.

Input: folders, /proc. Output: `DiskUse`, `FileSystem`. Next: `node.stats.disk`. Disk use is counted as by `du` and
cAdvisor's fs.GetDirUsage: allocated blocks, each inode once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from chronolet.ports.machine.usage import DiskUse, FileSystem

_BLOCK_BYTES = 512
_ENTRIES_BETWEEN_PAUSES = 500


def measured(folder: str, pause: Callable[[], bool], most_inodes: int) -> DiskUse | None:
    """Measure a folder's tree, as far as it is on the folder's own file system. Return None if the folder no longer
    exists, if it has more inodes than `most_inodes`, or if `pause`, which is called regularly, returns True.
    """
    at, used, seen = time.time_ns() // 1_000_000, 0, set[int]()
    try:
        top = os.lstat(folder)
    except OSError:
        return None
    seen.add(top.st_ino)
    for number, found in enumerate(_entries(folder, top.st_dev), 1):
        if found.st_ino not in seen:
            seen.add(found.st_ino)
            used += found.st_blocks * _BLOCK_BYTES
        if len(seen) > most_inodes or (number % _ENTRIES_BETWEEN_PAUSES == 0 and pause()):
            return None
    return DiskUse(at=at, used_bytes=used + top.st_blocks * _BLOCK_BYTES, inodes=len(seen))


def _entries(folder: str, device: int) -> Iterator[os.stat_result]:
    """Yield the stat result of each entry below the folder that is on the file system `device`. Links are not followed;
    entries that vanish during the scan are skipped.
    """
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for one in entries:
                    found = _stat(one)
                    if found is None or found.st_dev != device:
                        continue
                    if one.is_dir(follow_symlinks=False):
                        folders.append(one.path)
                    yield found
        except OSError:
            continue


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def upper_layer(pid: int, proc: Path = Path("/proc")) -> str:
    """Return the folder that a container writes to: overlay's upperdir, from the mount of the container's root. Empty
    with any other storage driver, or if the process no longer exists.
    """
    try:
        text = (proc / str(pid) / "mountinfo").read_text()
    except OSError:
        return ""
    for line in text.splitlines():
        fields, _, source = line.partition(" - ")
        if fields.split()[4:5] == ["/"] and source.startswith("overlay "):
            options = source.split()[-1].split(",")
            return next((one.removeprefix("upperdir=") for one in options if one.startswith("upperdir=")), "")
    return ""


def file_system(folder: str, proc: Path = Path("/proc")) -> FileSystem | None:
    """Return the file system of a folder; None if the folder does not exist."""
    try:
        found, number = os.statvfs(folder), os.stat(folder).st_dev  # noqa: PTH116 - a str is enough
        text = (proc / "self" / "mountinfo").read_text()
    except OSError:
        return None
    wanted = f"{os.major(number)}:{os.minor(number)}"
    lines = (line.partition(" - ") for line in text.splitlines())
    sources = (source.split()[1] for fields, _, source in lines if fields.split()[2] == wanted)
    return FileSystem(
        device=next(sources, wanted),
        capacity_bytes=found.f_blocks * found.f_frsize,
        available_bytes=found.f_bavail * found.f_frsize,
        inodes=found.f_files,
        inodes_free=found.f_ffree,
    )
