"""Remembers the end of the log outside the server, so that a loss of entries on the server is noticed.

Input: the run and the last position read, each second; a file in the state folder. Output: `LogLost` if the server has
a newer log, or one that ends earlier; an error if the server's log belongs to the agents of another node. A dedicated
thread writes the file, so that a slow disk delays no other thread. Next: `supervisor`.

The file is one block, overwritten in place (docs/adr/0021): a write costs one fdatasync and changes no metadata.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from chronolet.kernel.log.loss import lacks
from chronolet.kernel.storage.store import Store, StoreUnreachable
from chronolet_schemas import kernel
from chronolet_schemas.envelope import START, Position

BLOCK_BYTES = 512
"""Number of bytes that a disk writes atomically."""
FORMER_RUNS = 2
"""Number of former runs that fit into the block together with the longest node name."""

log = structlog.get_logger("chronolet.kernel")


class LogEnd(msgspec.Struct, frozen=True):
    """The last log entry that is known to exist."""

    node: str
    run: str
    at: str
    now: int = 0
    """The process's own time when it learned of the entry, in milliseconds; the position contains the server's time."""
    former_runs: tuple[str, ...] = ()
    """Runs of earlier logs, newest first. They allow a node to return to its log after a start with the wrong database.
    """


class LogMemory:
    """Remembers the log's end for one node. If `path` is None, the end is not stored on disk."""

    def __init__(self, node: str, path: Path | None, now: Callable[[], int] = lambda: 0) -> None:
        self._node = node
        self._path = path
        self._now = now
        self._end = None if path is None else _read(path, node)
        self._begun = ""
        """The run of the last log that this process began."""
        self._written = self._end
        self._former_runs = self._end.former_runs if self._end is not None else ()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="log end", daemon=True)

    def start(self) -> None:
        """Start writing the positions passed to `keep`."""
        if self._path is not None:
            self._thread.start()

    def keep(self, run: str, at: Position | None) -> None:
        """Remember that the log of this run has an entry at this position; earlier positions are ignored."""
        if at is None or at == START:
            return
        with self._changed:
            end = self._end
            if end is None or end.run != run or Position.parse(end.at) < at:
                self._end = LogEnd(self._node, run, str(at), self._now(), self._former_runs)
                self._changed.notify()

    def time(self) -> int:
        """Return the last known time of earlier processes, in milliseconds; 0 if unknown."""
        return self._end.now if self._end is not None else 0

    def began(self, run: str) -> None:
        """Record that the server had no log, and that this process began one with this run."""
        self._begun = run

    def lost(self, store: Store, run: str) -> kernel.LogLost | None:
        """Return the loss if the server's log lacks the remembered end, and forget that end; else return None. `run`:
        the run of the server's log.

        Raises StoreUnreachable if the server's log belongs to another node of the same name: it is neither the
        remembered log, nor a former log of this node, nor begun by this process, and it began before the remembered log
        ended.
        """
        end, last = self._end, store.last()
        if end is None:
            return None
        had = Position.parse(end.at)
        whole = end.run != run
        ours = run == self._begun or run in self._former_runs
        if whole and not ours and _oldest_milliseconds(store) < had.milliseconds:
            raise self._not_ours(end, run)
        if not whole and not lacks(store, had):
            return None
        with self._changed:
            self._end = None
            if whole:
                self._former_runs = (end.run, *(one for one in self._former_runs if one != end.run))[:FORMER_RUNS]
        found = START if whole else last
        return kernel.LogLost(
            node=self._node,
            former_run=end.run,
            had=end.at,
            found=str(found),
            entries=max(1, had.n - found.n),
        )

    def _not_ours(self, end: LogEnd, run: str) -> StoreUnreachable:
        return StoreUnreachable(
            f"Redis has the log of another node named {self._node}: found run {run}, begun before the last entry"
            f" recorded by {self._path or 'this process'}; expected run {end.run}, up to {end.at}. No shard was taken"
            " over and running pods continue: correct --redis, or rename one of the two nodes (--hostname-override)."
            f" To abandon the log of run {end.run} and join this one, remove {self._path} and restart",
            healing=False,
        )

    def stop(self) -> None:
        """Write the last position passed to `keep`, then stop the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        failing = False
        while True:
            with self._changed:
                while self._end in (None, self._written) and not self._stopping:
                    self._changed.wait()
                end, stopping = self._end, self._stopping
            if end is not None and end != self._written:
                try:
                    self._write(end)
                except OSError as error:
                    if not failing:  # logged once: a full disk has more important consequences
                        log.warning("cannot write the end of the log", file=str(self._path), error=str(error))
                    failing = True
                self._written = end  # even if it failed: the next end is another attempt
            if stopping:
                return

    def _write(self, end: LogEnd) -> None:
        assert self._path is not None  # noqa: S101 - the thread runs only with a path
        block = msgspec.json.encode(end).ljust(BLOCK_BYTES - 1) + b"\n"
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, block, 0)
            os.fdatasync(file)
        finally:
            os.close(file)


def _oldest_milliseconds(store: Store) -> int:
    """Return the time of the log's first entry, in milliseconds by the server's clock. If the beginning of the log is
    trimmed, return the time of a later entry.
    """
    trimmed = store.archived()[1]
    return trimmed.milliseconds if trimmed > START else store.sizes()["first_milliseconds"]


def log_loss(lost: kernel.LogLost) -> None:
    """Log the loss for the operator: what is lost, what is kept, and what happens now."""
    if lost.found == str(START):
        log.error(
            "the whole log was lost: Redis was emptied or replaced",
            entries=lost.entries,
            position=lost.found,
            up_to=lost.had,
            kept="running pods, and the manifests and Secrets in the state folder",
            now="a new log begins with the running pods; back-offs and KubeEvents start over",
        )
    else:
        log.error(
            "the end of the log was lost: Redis lacks entries that it had acknowledged",
            entries=lost.entries,
            had=lost.had,
            position=lost.found,
            kept="running pods, and the manifests and Secrets in the state folder",
            now="the log continues from the end found; running pods that it does not know are adopted",
        )


def _read(path: Path, node: str) -> LogEnd | None:
    try:
        end = msgspec.json.decode(path.read_bytes(), type=LogEnd)
        Position.parse(end.at)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        log.warning("unreadable record of the log's end ignored", file=str(path), error=str(error))
        return None
    if end.node == node:
        return end
    # The stored manifests also name their node, so nothing that belongs to that node is adopted.
    log.warning(
        "the state folder belongs to another node: its log and pods are not touched",
        file=str(path),
        found=end.node,
        expected=node,
        remedy=f"--hostname-override={end.node}",
    )
    return None
