"""Volumes on the host: emptyDir folders below the state folder (on disk or in memory), hostPaths (as they are, or
created as their type requires), and files about the pod itself.

Input: volumes and a pod's uid. Output: paths; everything created below the state folder is removed again. Next: the
containers' bind mounts. Corresponds to pkg/volume/emptydir/empty_dir.go, pkg/volume/hostpath/host_path.go,
pkg/volume/downwardapi/downwardapi.go.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from chronolet.adapters.volumes import mounts, subpaths
from chronolet.adapters.volumes.removal import remove_tree
from chronolet.ports.pods.volumes import PodVolumes, SubPath, VolumeFile, VolumeRefusal
from chronolet_schemas.podspec import EmptyDir, HostPath, Volume

_EMPTY_DIR_MODE = 0o777  # as in the kubelet, any user in any container of the pod may write
_PODS_MODE = 0o750
_ANYONES_FILE_MODE = 0o666
_MADE_FOLDER_MODE = 0o755
_MADE_FILE_MODE = 0o644

_SUBPATHS = "volume-subpaths"
_SETGID = stat.S_ISGID
_GROUP_READS = 0o040

_IS: Mapping[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


class HostVolumes:
    """Implements `ports.pods.volumes.Volumes` with folders below `root/pods/<uid>`."""

    def __init__(self, root: Path) -> None:
        self._pods = root / "pods"
        # Containers of a pod may start concurrently: checking for a mount and mounting must be atomic.
        self._mounting = threading.Lock()
        # Only one thread may write at a time, because all writes of a file use the same temporary name.
        self._writing = threading.Lock()

    def prepare(self, wanted: PodVolumes) -> Mapping[str, str]:
        return {volume.name: self._prepared(wanted, volume) for volume in wanted.volumes}

    def sub_path(self, part: SubPath) -> str:
        source, own = Path(part.source), self._folder(part.uid)
        place = own / _SUBPATHS / _part(part.volume) / _part(part.container) / str(part.index)
        try:
            with self._mounting:
                # Special files are allowed only in a hostPath, where they belong to the host; in a pod's own volumes, a
                # container has created them.
                subpaths.shown(source, part.path, place, special=not source.is_relative_to(own))
        except subpaths.Escapes as error:
            raise VolumeRefusal(f"{part.path!r} leads out of the volume") from error
        except subpaths.Special as error:
            raise VolumeRefusal(f"{part.path!r} is a {error}, expected a directory or a regular file") from error
        except PermissionError as error:
            raise VolumeRefusal(f"mounting a subPath requires CAP_SYS_ADMIN: {_text(error)}") from error
        except OSError as error:
            raise VolumeRefusal(_text(error)) from error
        return str(place)

    def remove(self, uid: str) -> None:
        folder = self._folder(uid)
        try:
            # Unmount everything first: what is mounted may belong to others and must not be removed.
            for point in mounts.below(folder):
                mounts.unmount(point)
            remove_tree(folder)
        except OSError as error:
            raise VolumeRefusal(f"{folder}: cannot be removed: {_text(error)}") from error

    def last_words_file(self, uid: str, container: str, attempt: int) -> str:
        path = self._termination_log(uid, container, attempt)
        try:
            path.parent.mkdir(_PODS_MODE, parents=True, exist_ok=True)
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fchmod(made, _ANYONES_FILE_MODE)
            finally:
                os.close(made)
        except OSError as error:
            raise VolumeRefusal(_text(error)) from error
        return str(path)

    def last_words(self, uid: str, container: str, attempt: int, limit: int) -> bytes:
        path = self._termination_log(uid, container, attempt)
        try:
            return _tail(path, limit)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise VolumeRefusal(_text(error)) from error

    def pod_file(self, uid: str, name: str, content: str | None) -> str:
        path = self._folder(uid) / _part(name)
        if content is None:
            return str(path)
        try:
            path.parent.mkdir(_PODS_MODE, parents=True, exist_ok=True)
            # Write in place, because containers have mounted this inode, not the name.
            opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(opened, "r+", encoding="utf-8", newline="") as file:
                if file.read() != content:
                    file.seek(0)
                    file.write(content)
                    file.truncate()
                os.fchmod(opened, _MADE_FILE_MODE)
        except OSError as error:
            raise VolumeRefusal(_text(error)) from error
        return str(path)

    def _termination_log(self, uid: str, container: str, attempt: int) -> Path:
        return self._folder(uid) / "containers" / _part(container) / str(attempt) / "termination-log"

    def _prepared(self, wanted: PodVolumes, volume: Volume) -> str:
        try:
            if volume.empty_dir is not None:
                return str(self._empty_dir(wanted, volume.name, volume.empty_dir))
            if volume.host_path is not None:
                return _host_path(volume.host_path)
            if volume.name in wanted.files:
                return str(self._files(wanted, volume.name))
        except OSError as error:
            raise VolumeRefusal(f'MountVolume.SetUp failed for volume "{volume.name}" : {_text(error)}') from error
        except VolumeRefusal as refusal:
            raise VolumeRefusal(f'MountVolume.SetUp failed for volume "{volume.name}" : {refusal}') from refusal
        raise VolumeRefusal(f'volume "{volume.name}": its type is not supported')

    def _empty_dir(self, wanted: PodVolumes, name: str, volume: EmptyDir) -> Path:
        folder = self._folder(wanted.uid) / "volumes" / "emptydir" / _part(name)
        folder.mkdir(_PODS_MODE, parents=True, exist_ok=True)
        if volume.medium == "Memory":
            with self._mounting:
                if not mounts.is_mounted(folder):
                    mounts.memory(folder, wanted.memory_bytes.get(name, 0))
        _give(folder, _EMPTY_DIR_MODE, wanted.fs_group)
        return folder

    def _files(self, wanted: PodVolumes, name: str) -> Path:
        """Write the volume's files and return their folder. Each file is replaced atomically, because containers may be
        reading it.
        """
        folder = self._folder(wanted.uid) / "volumes" / "downward-api" / _part(name)
        folder.mkdir(_PODS_MODE, parents=True, exist_ok=True)
        with self._writing:
            _give(folder, _MADE_FOLDER_MODE, wanted.fs_group)
            for file in wanted.files[name]:
                _write(folder, file, wanted.fs_group)
        return folder

    def _folder(self, uid: str) -> Path:
        return self._pods / _part(uid)


def _give(folder: Path, mode: int, group: int | None) -> None:
    """Set mode and group if they differ. Files that are created in the folder later inherit its group."""
    found = folder.stat()
    if group is not None:
        mode |= _SETGID
        if found.st_gid != group:
            os.chown(folder, -1, group)
    if stat.S_IMODE(found.st_mode) != mode or group is not None:
        folder.chmod(mode)  # mkdir applies the umask, chown clears the setgid bit


def _write(folder: Path, file: VolumeFile, group: int | None) -> None:
    path = folder.joinpath(*(_part(name) for name in file.path.split("/")))
    path.parent.mkdir(_MADE_FOLDER_MODE, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(file.content, encoding="utf-8")
    if group is not None:
        os.chown(unfinished, -1, group)
    unfinished.chmod(file.mode if group is None else file.mode | _GROUP_READS)
    unfinished.rename(path)


def _tail(path: Path, limit: int) -> bytes:
    """Return the last `limit` bytes of a file that a container wrote. Never blocks, whatever kind of file it is."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = os.fstat(opened).st_size
        return os.pread(opened, limit, max(size - limit, 0))
    finally:
        os.close(opened)


def _part(name: str) -> str:
    """Return the name after checking that it is a single path component: names may be hostile."""
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise VolumeRefusal(f"{name!r}: is not a valid folder name")
    return name


def _host_path(volume: HostPath) -> str:
    path, kind = volume.path, volume.type
    if kind not in _IS:
        return path
    if kind == "DirectoryOrCreate" and not Path(path).exists():
        Path(path).mkdir(_MADE_FOLDER_MODE, parents=True, exist_ok=True)
    elif kind == "FileOrCreate" and not Path(path).exists():
        # As with the kubelet, its folder must already exist.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _MADE_FILE_MODE))
    fits, word = _IS[kind]
    if not Path(path).exists() or not fits(Path(path).stat().st_mode):
        raise VolumeRefusal(f"hostPath type check failed: {path} is not {word}")
    return path


def _text(error: OSError) -> str:
    text = error.strerror or str(error)
    return f"{error.filename}: {text}" if error.filename else text
