"""The folder of pods' logs, and the folder of links beside it.

Comes in: where they are. Goes out: what lies there, removals. Answers to the port `pod_logs`. Nothing outside of the
two folders is touched: names with a path in them are refused, links are never followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from chronolet.adapters.volumes.removal import remove_tree
from chronolet.ports.pod_logs import LogLink, PodLogsRefusal

_SUFFIX = ".log"
_LINKS = "containers"


class PodLogFolders:
    """`ports.pod_logs.PodLogs`: pods' folders in `folder`, links in its neighbour `containers`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._links = folder.with_name(_LINKS)

    @property
    def path(self) -> str:
        return str(self._folder)

    def folders(self) -> Sequence[str]:
        return [one.name for one in _entries(self._folder) if one.is_dir(follow_symlinks=False)]

    def links(self) -> Sequence[LogLink]:
        return [
            LogLink(name=one.name, container_id=_container_id(one.name), target_exists=Path(one.path).exists())
            for one in _entries(self._links)
            if one.is_symlink()
        ]

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


def _container_id(link: str) -> str:
    """The id in `<pod>_<namespace>_<container>-<id>.log`; empty if there is none."""
    if not link.endswith(_SUFFIX):
        return ""
    return link.removesuffix(_SUFFIX).rpartition("-")[2]
