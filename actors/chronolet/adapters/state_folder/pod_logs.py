"""The folder of pods' logs, and the folder of links next to it.

Input: the paths of both. Output: their content, new links, removals. Next: the users of the port `ports.pods.pod_logs`.
Nothing outside the two folders is touched: names that contain a path are rejected, and links are never followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from chronolet.adapters.volumes.removal import remove_tree
from chronolet.ports.pods.pod_logs import ContainerLog, LogFolder, LogLink, PodLogsRefusal, folder_of

_SUFFIX = ".log"
_LINKS = "containers"
_LONGEST_NAME = 255


class PodLogFolders:
    """Implements `ports.pods.pod_logs.PodLogs`: pods' folders in `folder`, links in the sibling folder `containers`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._links = folder.with_name(_LINKS)

    @property
    def path(self) -> str:
        return str(self._folder)

    def folders(self) -> Sequence[LogFolder]:
        return [
            LogFolder(name=one.name, changed_at=one.stat(follow_symlinks=False).st_mtime_ns // 1_000_000)
            for one in _entries(self._folder)
            if one.is_dir(follow_symlinks=False)
        ]

    def links(self) -> Sequence[LogLink]:
        return [
            LogLink(name=one.name, container_id=_container_id(one.name), target_exists=Path(one.path).exists())
            for one in _entries(self._links)
            if one.is_symlink()
        ]

    def link(self, log: ContainerLog, attempt: int, target: str) -> None:
        inner = _within(self._folder, folder_of(log.pod, log.uid)) / log.container / f"{attempt}{_SUFFIX}"
        outer = self._links / _link_name(log)
        for path, leads_to in ((inner, target), (outer, str(inner))):
            with _refusals(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                _link_to(path, leads_to)

    def unlink(self, log: ContainerLog) -> None:
        outer = self._links / _link_name(log)
        with _refusals(outer):
            if not outer.is_symlink():
                return
            inner = outer.readlink()
            if inner.parent.parent == self._folder / folder_of(log.pod, log.uid) and inner.is_symlink():
                inner.unlink(missing_ok=True)
            outer.unlink(missing_ok=True)

    def remove_folder(self, name: str) -> None:
        path = _within(self._folder, name)
        with _refusals(path):
            if not path.is_symlink():
                remove_tree(path)

    def remove_link(self, name: str) -> None:
        path = _within(self._links, name)
        with _refusals(path):
            if path.is_symlink() and not path.exists():
                path.unlink(missing_ok=True)


def _entries(folder: Path) -> Sequence[os.DirEntry[str]]:
    with _refusals(folder):
        try:
            with os.scandir(folder) as entries:
                return sorted(entries, key=lambda one: one.name)
        except FileNotFoundError:
            return []


def _within(folder: Path, name: str) -> Path:
    if name != Path(name).name or name in ("", ".", ".."):
        raise PodLogsRefusal(f"{name!r}: expected a name in {folder}")
    return folder / name


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PodLogsRefusal(f"{path}: {error.strerror or error}") from error


def _link_to(path: Path, target: str) -> None:
    """Create or replace a link. Raises OSError if the path exists and is not a link."""
    if path.is_symlink():
        if str(path.readlink()) == target:
            return
        path.unlink(missing_ok=True)
    path.symlink_to(target)


def _link_name(log: ContainerLog) -> str:
    """Return the link's name. As in the kubelet, a name that is too long is truncated at the end of the id."""
    namespace, _, name = log.pod.partition("/")
    return f"{name}_{namespace}_{log.container}-{log.id}"[: _LONGEST_NAME - len(_SUFFIX)] + _SUFFIX


def _container_id(link: str) -> str:
    """Return the id in `<pod>_<namespace>_<container>-<id>.log`; empty if there is none."""
    if not link.endswith(_SUFFIX):
        return ""
    return link.removesuffix(_SUFFIX).rpartition("-")[2]
