"""The manifest folder on disk: what is in it, and what changes, as soon as it does.

Comes in: the folder's path (or that of one file). Goes out: `FolderNews` with the content of files. Next: the manifests
actor's effect. Answers to pkg/kubelet/config/file.go (listConfig) and file_linux.go (doWatch).

A notification only makes it look; what it goes by is each file's time, size and inode, looked at every
`rescan_seconds` in any case: a folder on a network file system notifies of nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from chronolet.adapters.machine.inotify import Bell
from chronolet.ports.pods.manifests import FolderNews, ManifestFile

SUFFIXES = (".yaml", ".yml", ".json", ".kyaml")
_MOST_BYTES = 16 * 1024 * 1024
"""More than any manifest may have: enough to say that it is too large."""
_TICK_NANOSECONDS = 20_000_000
_SLICE_SECONDS = 1.0
"""How long a wait lasts before it looks whether it is still wanted, and whether an unreadable folder can be read."""


class _Seen(NamedTuple):
    """What tells one content of a file from another without reading it.

    `changed_at` is the inode's time, which a change of rights moves as well. It moves in ticks of a few milliseconds:
    a file that was written in this very tick may be written in it once more, so `settled` says that it was not.
    `fresh`: its content is of this tick, so that more of it may be on its way.
    """

    changed_at: int
    size: int
    inode: int
    settled: bool
    fresh: bool


_BLIND = _Seen(0, 0, 0, settled=False, fresh=False)
"""Of an entry that cannot be looked at, and so is read at every look."""


class ManifestFolder:
    """`ports.manifests.Folder`."""

    def __init__(self, path: str | Path, rescan_seconds: float = 20.0) -> None:
        self._path = Path(path).absolute()
        self._rescan_seconds = rescan_seconds

    @property
    def path(self) -> str:
        return _text(str(self._path))

    def follow(self, stop: threading.Event) -> Iterator[FolderNews]:
        return _Watch(self._path, self._rescan_seconds, stop).news()


class NoFolder:
    """A `Folder` for a node that watches none: nothing is in it, and nothing changes."""

    path = ""

    def follow(self, stop: threading.Event) -> Iterator[FolderNews]:
        yield FolderNews(complete=True)
        stop.wait()


class _Watch:
    """One run of `follow`."""

    def __init__(self, path: Path, rescan_seconds: float, stop: threading.Event) -> None:
        self._path = path
        self._rescan_seconds = rescan_seconds
        self._stop = stop
        self._seen: dict[str, _Seen] | None = None
        self._told: dict[str, int] = {}
        self._error = ""
        self._unread = False
        """Whether a file was left for a tick, until it is whole."""
        self._bell: Bell | None = None
        self._where = (0, 0)
        """The device and inode of the folder that the bell hangs in: its path may come to mean another one."""

    def news(self) -> Iterator[FolderNews]:
        try:
            while not self._stop.is_set():
                # The bell first: what changes while the folder is being read rings it.
                self._hang_bell()
                found = self._look()
                if found is not None:
                    yield found
                self._wait()
        finally:
            self._take_bell_down()

    # -- waiting ---------------------------------------------------------------------------------------------------

    def _hang_bell(self) -> None:
        # Without one (the folder is missing, or the machine's watches are used up) the rescan has to do.
        with contextlib.suppress(OSError):
            folder = self._path if self._path.is_dir() else self._path.parent
            status = folder.stat()
            where = (status.st_dev, status.st_ino)
            if self._bell is not None and self._bell.standing and where == self._where:
                return
            self._take_bell_down()
            self._bell, self._where = Bell(folder), where

    def _take_bell_down(self) -> None:
        if self._bell is not None:
            self._bell.close()
            self._bell = None

    def _wait(self) -> None:
        """Until it rings, the rescan is due, or it is no longer wanted."""
        bell = self._bell
        patience = _SLICE_SECONDS if self._error or bell is None else self._rescan_seconds
        if self._unread:
            patience = min(patience, _TICK_NANOSECONDS / 1e9)
        until = time.monotonic() + patience
        while not self._stop.is_set() and (left := until - time.monotonic()) > 0:
            if bell is None:
                self._stop.wait(min(left, _SLICE_SECONDS))
            elif bell.wait(min(left, _SLICE_SECONDS)) or not bell.standing:
                return

    # -- looking ---------------------------------------------------------------------------------------------------

    def _look(self) -> FolderNews | None:
        try:
            found = self._fingerprints()
            if self._seen is None and any(seen.fresh for seen in found.values()):
                self._stop.wait(_TICK_NANOSECONDS / 1e9)  # the first news tells of all that is there
                found = self._fingerprints()
        except OSError as error:
            return self._unreadable(error)
        self._leave_fresh(found)
        before, self._seen, self._error = self._seen, found, ""
        if before is None:
            self._told.clear()
        suspects = [name for name, seen in found.items() if before is None or _differs(before.get(name), seen)]
        suspects = [name for name in suspects if not found[name].fresh]
        try:
            changed = tuple(self._changed(suspects, found))
        except OSError as error:
            return self._unreadable(error)
        # A file that came and went within a tick was never reported, so its removal is not reported either.
        gone = [name for name in before or {} if name not in found and name in self._told]
        for name in gone:
            del self._told[name]
        if before is not None and not changed and not gone:
            return None
        return FolderNews(
            changed=changed,
            gone=tuple(self._full(name) for name in gone),
            files=tuple(self._full(name) for name in found),
            complete=before is None,
        )

    def _changed(self, suspects: Sequence[str], found: dict[str, _Seen]) -> Iterator[ManifestFile]:
        """The files whose content is new. One that disappeared before it could be read leaves `found`: it was removed.

        OSError if the folder itself is gone: that is no removal of its files.
        """
        folder = _inode(self._path)
        for name in suspects:
            file = self._read(name)
            if file is None:
                if not self._path.is_dir() or _inode(self._path) != folder:
                    raise FileNotFoundError(errno.ENOENT, "the folder was removed or replaced while it was being read")
                del found[name]
            elif self._is_new(name, file):
                yield file

    def _leave_fresh(self, found: dict[str, _Seen]) -> None:
        """Keep for the next look what may be half written; not what was written elsewhere and moved in."""
        moved_in: set[str] = set()
        if self._bell is not None:
            moved_in, self._bell.moved_in = self._bell.moved_in, set()
        for name, seen in found.items():
            if seen.fresh:
                found[name] = seen._replace(settled=False, fresh=name not in moved_in)
        self._unread = any(seen.fresh for seen in found.values())

    def _is_new(self, name: str, file: ManifestFile) -> bool:
        """Whether this is another content than the one that was told last."""
        content = hash((file.content, file.error))
        if self._told.get(name) == content:
            return False
        self._told[name] = content
        return True

    def _unreadable(self, error: OSError) -> FolderNews | None:
        said = error.strerror or str(error)
        self._seen = None
        if said == self._error:
            return None
        self._error = said
        return FolderNews(error=said)

    def _fingerprints(self) -> dict[str, _Seen]:
        """All manifest files by name, in order of their names."""
        if not self._path.is_dir():
            return {self._path.name: _fingerprint(self._path.stat())}
        with os.scandir(self._path) as entries:
            names = sorted(entry.name for entry in entries if _is_manifest(entry.name))
        found: dict[str, _Seen] = {}
        for name in names:
            # Gone by now, or a link to nowhere: as if it were not there.
            with contextlib.suppress(FileNotFoundError):
                seen = _looked_at(self._path / name)
                if seen is not None:
                    found[name] = seen
        return found

    def _file(self, name: str) -> Path:
        return self._path / name if self._path.is_dir() else self._path

    def _full(self, name: str) -> str:
        return _text(str(self._file(name)))

    def _read(self, name: str) -> ManifestFile | None:
        """The file's content, or why it cannot be read; None if it is not there any more."""
        path, content, error = self._file(name), b"", ""
        try:
            content = _content(path)
        except FileNotFoundError:
            return None
        except OSError as refused:
            error = refused.strerror or str(refused)
        return ManifestFile(path=_text(str(path)), name=_text(name), content=content, error=error)


def _is_manifest(name: str) -> bool:
    """Hidden files are none, nor what editors leave: `web.yaml~`, `#web.yaml#`, `.web.yaml.swp`, `4913`."""
    return name.endswith(SUFFIXES) and not name.startswith(".")


def _differs(before: _Seen | None, now: _Seen) -> bool:
    return before is None or not before.settled or before[:3] != now[:3]


def _looked_at(path: Path) -> _Seen | None:
    """The fingerprint of one entry, None of a folder. What cannot be looked at (a link to itself, or into a folder
    without the right to enter it) is a file whose reading tells why: the others are not to suffer from it.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        raise
    except OSError:
        return _BLIND
    return None if stat.S_ISDIR(status.st_mode) else _fingerprint(status)


def _fingerprint(status: os.stat_result) -> _Seen:
    now = time.time_ns()
    settled = now - status.st_ctime_ns > _TICK_NANOSECONDS
    # What has a time of the future is not fresh: it would be left until then.
    fresh = 0 <= now - status.st_mtime_ns <= _TICK_NANOSECONDS
    return _Seen(status.st_ctime_ns, status.st_size, status.st_ino, settled, fresh)


def _inode(path: Path) -> tuple[int, int]:
    """Device and inode that the path leads to. OSError."""
    status = path.stat()
    return status.st_dev, status.st_ino


def _content(path: Path) -> bytes:
    # Non-blocking: a pipe that nobody writes to would hold the watch for ever.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path.name} is no regular file")
        return file.read(_MOST_BYTES)


def _text(name: str) -> str:
    """A file's name that can be written as UTF-8, whatever bytes it has."""
    return name.encode("utf-8", "backslashreplace").decode()
