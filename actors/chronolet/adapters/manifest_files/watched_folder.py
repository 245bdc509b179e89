"""Watch the manifest folder: report its content, and changes as soon as they happen.

Input: the path of the folder (or of a single file). Output: `FolderNews` with the content of files. Next: the manifests
actor's effect. Corresponds to pkg/kubelet/config/file.go (listConfig) and file_linux.go (doWatch).

A notification only triggers a scan, which compares each file's times, size and inode. There is also a scan every
`rescan_seconds`, since a network file system sends no notifications.
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

from chronolet.adapters.machine.inotify import FolderNotifier
from chronolet.ports.pods.manifests import FolderNews, ManifestFile

SUFFIXES = (".yaml", ".yml", ".json", ".kyaml")
_MOST_BYTES = 16 * 1024 * 1024
"""Maximum number of bytes read from a file. Larger than any valid manifest, so that a manifest that is too large is
reported as such.
"""
_TICK_SECONDS = 0.02
"""How long after a write a file may be incomplete; longer than the resolution of a file's timestamps."""
_SLICE_SECONDS = 1.0
"""Interval at which a wait checks for cancellation, and at which an unreadable folder is read again."""


class _Fingerprint(NamedTuple):
    """Distinguishes versions of a file without reading it.

    `changed_at` is the inode's ctime, which also changes with permissions. It has a resolution of a few milliseconds: a
    file written in the current tick may be written again in the same tick. `settled`: this can no longer happen.
    `fresh`: the content was written in the current tick, so it may still be incomplete.
    """

    changed_at: int
    size: int
    inode: int
    settled: bool
    fresh: bool


_BLIND = _Fingerprint(0, 0, 0, settled=False, fresh=False)
"""Fingerprint of an entry that cannot be inspected; it is therefore read in every scan."""


class ManifestFolder:
    """Implements `ports.pods.manifests.Folder`."""

    def __init__(self, path: str | Path, rescan_seconds: float = 20.0, *, tick_seconds: float = _TICK_SECONDS) -> None:
        """`tick_seconds`: a file that was written less than this long ago may be incomplete."""
        self._path = Path(path).absolute()
        self._rescan_seconds = rescan_seconds
        self._tick_seconds = tick_seconds

    @property
    def path(self) -> str:
        return _text(str(self._path))

    def follow(self, stop: threading.Event) -> Iterator[FolderNews]:
        return _Watch(self._path, self._rescan_seconds, self._tick_seconds, stop).news()


class NoFolder:
    """A `Folder` for a node that watches none. It is always empty."""

    path = ""

    def follow(self, stop: threading.Event) -> Iterator[FolderNews]:
        yield FolderNews(complete=True)
        stop.wait()


class _Watch:
    """One run of `follow`."""

    def __init__(self, path: Path, rescan_seconds: float, tick_seconds: float, stop: threading.Event) -> None:
        self._path = path
        self._rescan_seconds = rescan_seconds
        self._tick_seconds = tick_seconds
        self._tick = round(tick_seconds * 1e9)
        """`tick_seconds` in nanoseconds."""
        self._stop = stop
        self._seen: dict[str, _Fingerprint] | None = None
        self._reported: dict[str, int] = {}
        self._error = ""
        self._unread = False
        """Whether a file that may still be incomplete was postponed by a tick."""
        self._notifier: FolderNotifier | None = None
        self._where = (0, 0)
        """Device and inode of the watched folder, to detect that its path refers to another folder."""

    def news(self) -> Iterator[FolderNews]:
        try:
            while not self._stop.is_set():
                # Start watching before the scan, so that changes during the scan are noticed.
                self._start_notifier()
                found = self._look()
                if found is not None:
                    yield found
                self._wait()
        finally:
            self._stop_notifier()

    # -- waiting ---------------------------------------------------------------------------------------------------

    def _start_notifier(self) -> None:
        # Without a notifier (the folder is missing, or there are no inotify watches left) only rescans find changes.
        with contextlib.suppress(OSError):
            folder = self._path if self._path.is_dir() else self._path.parent
            status = folder.stat()
            where = (status.st_dev, status.st_ino)
            if self._notifier is not None and self._notifier.standing and where == self._where:
                return
            self._stop_notifier()
            self._notifier, self._where = FolderNotifier(folder), where

    def _stop_notifier(self) -> None:
        if self._notifier is not None:
            self._notifier.close()
            self._notifier = None

    def _wait(self) -> None:
        """Wait until there is a change, the next rescan is due, or the watch is cancelled."""
        notifier = self._notifier
        patience = _SLICE_SECONDS if self._error or notifier is None else self._rescan_seconds
        if self._unread:
            patience = min(patience, self._tick_seconds)
        until = time.monotonic() + patience
        while not self._stop.is_set() and (left := until - time.monotonic()) > 0:
            if notifier is None:
                self._stop.wait(min(left, _SLICE_SECONDS))
            elif notifier.wait(min(left, _SLICE_SECONDS)) or not notifier.standing:
                return

    # -- scanning --------------------------------------------------------------------------------------------------

    def _look(self) -> FolderNews | None:
        try:
            found = self._fingerprints()
            if self._seen is None and any(seen.fresh for seen in found.values()):
                self._stop.wait(self._tick_seconds)  # the first report must be complete
                found = self._fingerprints()
        except OSError as error:
            return self._unreadable(error)
        self._leave_fresh(found)
        before, self._seen, self._error = self._seen, found, ""
        if before is None:
            self._reported.clear()
        suspects = [name for name, seen in found.items() if before is None or _differs(before.get(name), seen)]
        suspects = [name for name in suspects if not found[name].fresh]
        try:
            changed = tuple(self._changed(suspects, found))
        except OSError as error:
            return self._unreadable(error)
        # A file that existed for less than a tick was never reported, so its removal is not reported either.
        gone = [name for name in before or {} if name not in found and name in self._reported]
        for name in gone:
            del self._reported[name]
        if before is not None and not changed and not gone:
            return None
        return FolderNews(
            changed=changed,
            gone=tuple(self._full(name) for name in gone),
            files=tuple(self._full(name) for name in found),
            complete=before is None,
        )

    def _changed(self, suspects: Sequence[str], found: dict[str, _Fingerprint]) -> Iterator[ManifestFile]:
        """Yield the files with new content. A file that disappeared before it was read is removed from `found`.

        Raises OSError if the folder itself was removed or replaced, because its files do not count as removed then.
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

    def _leave_fresh(self, found: dict[str, _Fingerprint]) -> None:
        """Postpone files that may be incomplete to the next scan, except those that were moved in."""
        moved_in: set[str] = set()
        if self._notifier is not None:
            moved_in, self._notifier.moved_in = self._notifier.moved_in, set()
        for name, seen in found.items():
            if seen.fresh:
                found[name] = seen._replace(settled=False, fresh=name not in moved_in)
        self._unread = any(seen.fresh for seen in found.values())

    def _is_new(self, name: str, file: ManifestFile) -> bool:
        """Whether the content differs from the content that was last reported."""
        content = hash((file.content, file.error))
        if self._reported.get(name) == content:
            return False
        self._reported[name] = content
        return True

    def _unreadable(self, error: OSError) -> FolderNews | None:
        text = error.strerror or str(error)
        self._seen = None
        if text == self._error:
            return None
        self._error = text
        return FolderNews(error=text)

    def _fingerprints(self) -> dict[str, _Fingerprint]:
        """Return the fingerprints of all manifest files, sorted by name."""
        if not self._path.is_dir():
            return {self._path.name: _fingerprint(self._path.stat(), self._tick)}
        with os.scandir(self._path) as entries:
            names = sorted(entry.name for entry in entries if _is_manifest(entry.name))
        found: dict[str, _Fingerprint] = {}
        for name in names:
            # The entry has been removed since the listing, or is a dangling link: treat it as absent.
            with contextlib.suppress(FileNotFoundError):
                seen = _looked_at(self._path / name, self._tick)
                if seen is not None:
                    found[name] = seen
        return found

    def _file(self, name: str) -> Path:
        return self._path / name if self._path.is_dir() else self._path

    def _full(self, name: str) -> str:
        return _text(str(self._file(name)))

    def _read(self, name: str) -> ManifestFile | None:
        """Return the file's content, or why it cannot be read; None if the file no longer exists."""
        path, content, error = self._file(name), b"", ""
        try:
            content = _content(path)
        except FileNotFoundError:
            return None
        except OSError as refused:
            error = refused.strerror or str(refused)
        return ManifestFile(path=_text(str(path)), name=_text(name), content=content, error=error)


def _is_manifest(name: str) -> bool:
    """Whether this is a manifest, rather than a hidden file or an editor's temporary file such as `web.yaml~`,
    `.web.yaml.swp`, `4913`.
    """
    return name.endswith(SUFFIXES) and not name.startswith(".")


def _differs(before: _Fingerprint | None, now: _Fingerprint) -> bool:
    return before is None or not before.settled or before[:3] != now[:3]


def _looked_at(path: Path, tick: int) -> _Fingerprint | None:
    """Return the fingerprint of one entry; None if it is a folder. An entry that cannot be inspected (such as a link to
    itself, or into an inaccessible folder) counts as a file: reading it reports the error, so that other files are not
    affected.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        raise
    except OSError:
        return _BLIND
    return None if stat.S_ISDIR(status.st_mode) else _fingerprint(status, tick)


def _fingerprint(status: os.stat_result, tick: int) -> _Fingerprint:
    """Return the fingerprint of a file. `tick` is in nanoseconds."""
    now = time.time_ns()
    settled = now - status.st_ctime_ns > tick
    # A time in the future does not count as fresh: otherwise the file would be postponed until then.
    fresh = 0 <= now - status.st_mtime_ns <= tick
    return _Fingerprint(status.st_ctime_ns, status.st_size, status.st_ino, settled, fresh)


def _inode(path: Path) -> tuple[int, int]:
    """Return device and inode of the path's target. Raises OSError."""
    status = path.stat()
    return status.st_dev, status.st_ino


def _content(path: Path) -> bytes:
    # Non-blocking, because opening a pipe without a writer would otherwise hang the watch.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path.name} is not a regular file")
        return file.read(_MOST_BYTES)


def _text(name: str) -> str:
    """Make a file name encodable as UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode()
