"""Volumes on the host: emptyDir folders below the state folder, hostPath as it is or as its type wants it made.

Comes in: volumes and a pod's uid. Goes out: paths; folders made, and removed again. Next: binds of containers.
Answers to pkg/volume/emptydir/empty_dir.go, pkg/volume/hostpath/host_path.go.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from chronolet.ports.volumes import VolumeRefusal
from chronolet_schemas.podspec import HostPath, Volume

_EMPTY_DIR_MODE = 0o777  # any user of any container of the pod may write, as in the kubelet's
_PODS_MODE = 0o750
_ANYONES_FILE_MODE = 0o666
_MADE_FOLDER_MODE = 0o755
_MADE_FILE_MODE = 0o644

# A name that is taken. (An empty folder of the name is replaced: it was to be removed, too.)
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_IS: Mapping[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


class HostVolumes:
    """`ports.volumes.Volumes` with its folders below `root/pods/<uid>`."""

    def __init__(self, root: Path) -> None:
        self._pods = root / "pods"

    def prepare(self, uid: str, volumes: Sequence[Volume]) -> Mapping[str, str]:
        return {volume.name: self._prepared(uid, volume) for volume in volumes}

    def remove(self, uid: str) -> None:
        folder = self._folder(uid)
        try:
            remove_tree(folder)
        except OSError as error:
            raise VolumeRefusal(f"{folder}: cannot be removed: {_said(error)}") from error

    def last_words_file(self, uid: str, container: str, attempt: int) -> str:
        path = self._last_words(uid, container, attempt)
        try:
            path.parent.mkdir(_PODS_MODE, parents=True, exist_ok=True)
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fchmod(made, _ANYONES_FILE_MODE)
            finally:
                os.close(made)
        except OSError as error:
            raise VolumeRefusal(_said(error)) from error
        return str(path)

    def last_words(self, uid: str, container: str, attempt: int, limit: int) -> bytes:
        path = self._last_words(uid, container, attempt)
        try:
            return _tail(path, limit)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise VolumeRefusal(_said(error)) from error

    def pod_file(self, uid: str, name: str, content: str) -> str:
        path = self._folder(uid) / _part(name)
        try:
            path.parent.mkdir(_PODS_MODE, parents=True, exist_ok=True)
            # In place: a container has this very file mounted, not the name.
            opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(opened, "r+", encoding="utf-8", newline="") as file:
                if file.read() != content:
                    file.seek(0)
                    file.write(content)
                    file.truncate()
                os.fchmod(opened, _MADE_FILE_MODE)
        except OSError as error:
            raise VolumeRefusal(_said(error)) from error
        return str(path)

    def _last_words(self, uid: str, container: str, attempt: int) -> Path:
        return self._folder(uid) / "containers" / _part(container) / str(attempt) / "termination-log"

    def _prepared(self, uid: str, volume: Volume) -> str:
        try:
            if volume.empty_dir is not None:
                return str(self._empty_dir(uid, volume.name))
            if volume.host_path is not None:
                return _host_path(volume.host_path)
        except OSError as error:
            raise VolumeRefusal(f'MountVolume.SetUp failed for volume "{volume.name}" : {_said(error)}') from error
        except VolumeRefusal as refusal:
            raise VolumeRefusal(f'MountVolume.SetUp failed for volume "{volume.name}" : {refusal}') from refusal
        raise VolumeRefusal(f'volume "{volume.name}": of a kind that is not supported; expected emptyDir or hostPath')

    def _empty_dir(self, uid: str, name: str) -> Path:
        folder = self._folder(uid) / "volumes" / "emptydir" / _part(name)
        folder.parent.mkdir(_PODS_MODE, parents=True, exist_ok=True)
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)
            folder.chmod(_EMPTY_DIR_MODE)  # mkdir's mode is cut by the umask
        return folder

    def _folder(self, uid: str) -> Path:
        return self._pods / _part(uid)


def _tail(path: Path, limit: int) -> bytes:
    """The last bytes of a file that a container wrote: nothing that it put there may make us wait."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = os.fstat(opened).st_size
        return os.pread(opened, limit, max(size - limit, 0))
    finally:
        os.close(opened)


def _part(name: str) -> str:
    """A name that is one part of a path, whoever wrote it."""
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise VolumeRefusal(f"{name!r}: is no name of a folder")
    return name


def _host_path(volume: HostPath) -> str:
    path, kind = volume.path, volume.type
    if kind not in _IS:
        return path
    if kind == "DirectoryOrCreate":
        Path(path).mkdir(_MADE_FOLDER_MODE, parents=True, exist_ok=True)
    elif kind == "FileOrCreate" and not Path(path).exists():
        # Its folder must be there already, as the kubelet has it.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _MADE_FILE_MODE))
    fits, word = _IS[kind]
    if not Path(path).exists() or not fits(Path(path).stat().st_mode):
        raise VolumeRefusal(f"hostPath type check failed: {path} is not {word}")
    return path


def remove_tree(folder: Path) -> None:
    """Remove a folder with all it holds; nothing happens if it is not there. Never leaves it by a symbolic link.

    What a container wrote may be thousands of folders deep. So nothing is walked: each round lifts grandchildren up
    into the folder and removes the children that became empty, with two open folders at any depth.
    """
    try:
        top = os.open(folder, _FOLDER)
    except FileNotFoundError:
        return
    try:
        numbers = itertools.count()
        while entries := _entries(top):
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _lift_and_remove(top, entry.name, numbers)
                else:
                    os.unlink(entry.name, dir_fd=top)
    finally:
        os.close(top)
    folder.rmdir()


def _entries(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def _lift_and_remove(top: int, name: str, numbers: Iterator[int]) -> None:
    child = os.open(name, _FOLDER, dir_fd=top)
    try:
        for entry in _entries(child):
            if entry.is_dir(follow_symlinks=False):
                _lift(child, entry.name, top, numbers)
            else:
                os.unlink(entry.name, dir_fd=child)
    finally:
        os.close(child)
    os.rmdir(name, dir_fd=top)


def _lift(child: int, name: str, top: int, numbers: Iterator[int]) -> None:
    for number in numbers:
        try:
            os.rename(name, f".removed-{number}", src_dir_fd=child, dst_dir_fd=top)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        else:
            return


def _said(error: OSError) -> str:
    said = error.strerror or str(error)
    return f"{error.filename}: {said}" if error.filename else said
