"""How far the log went, remembered outside of the server: what the server has lost by itself, nobody else can tell.

Comes in: the run and the last position that was read, each second; a file of the state folder. Goes out: `LogLost` if
the server has a newer log, or one that ends earlier; an error if it has a log that others keep. One thread writes, so
that a slow disk delays nobody. Next: `supervisor`.

The file is one block that is overwritten in place (docs/adr/0021): a write costs one fdatasync and moves no metadata.
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
"""What a disk writes as a whole or not at all."""
FORMER_RUNS = 2
"""How many fit into the block, next to the longest name of a node."""

log = structlog.get_logger("chronolet.kernel")


class LogEnd(msgspec.Struct, frozen=True):
    """The last entry of a log that is known to be there."""

    node: str
    run: str
    at: str
    now: int = 0
    """The process's own time then, in milliseconds: not the server's, which is in the position."""
    former_runs: tuple[str, ...] = ()
    """Of the logs before this one, newest first: the way back from a database that was given by mistake stays open."""


class LogMemory:
    """Remembers the log's end for one node. Without a path it remembers nothing beyond the process."""

    def __init__(self, node: str, path: Path | None, now: Callable[[], int] = lambda: 0) -> None:
        self._node = node
        self._path = path
        self._now = now
        self._end = None if path is None else _read(path, node)
        self._begun = ""
        """The run of the log that this process began last."""
        self._written = self._end
        self._former_runs = self._end.former_runs if self._end is not None else ()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="log end", daemon=True)

    def start(self) -> None:
        """Write from now on what `keep` is given."""
        if self._path is not None:
            self._thread.start()

    def keep(self, run: str, at: Position | None) -> None:
        """The log of this run has an entry at this position; an earlier one than before is passed over."""
        if at is None or at == START:
            return
        with self._changed:
            end = self._end
            if end is None or end.run != run or Position.parse(end.at) < at:
                self._end = LogEnd(self._node, run, str(at), self._now(), self._former_runs)
                self._changed.notify()

    def time(self) -> int:
        """How far the time of the processes before had come, in milliseconds; 0 if nothing tells."""
        return self._end.now if self._end is not None else 0

    def began(self, run: str) -> None:
        """The server had no log: this process began one, of this run."""
        self._begun = run

    def lost(self, store: Store, run: str) -> kernel.LogLost | None:
        """What the log on the server, whose run this is, lacks of what is remembered. It is then forgotten here.

        StoreUnreachable for another database: its log for this name was there before the remembered one ended.
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
            f"Redis has a log of another node that is named {self._node} too: found run {run}, begun before the last"
            f" entry that {self._path or 'this process'} remembers; expected run {end.run}, up to {end.at}. Nothing was"
            " taken and what runs goes on: correct --redis, or give one of the two nodes another name"
            " (--hostname-override)."
            f" To give up the log of run {end.run} and take part in this one, remove {self._path} and start again",
            healing=False,
        )

    def stop(self) -> None:
        """Write the last of it, and no more."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        complained = False
        while True:
            with self._changed:
                while self._end in (None, self._written) and not self._stopping:
                    self._changed.wait()
                end, stopping = self._end, self._stopping
            if end is not None and end != self._written:
                try:
                    self._write(end)
                except OSError as error:
                    if not complained:  # once: a full disk has more important things to say
                        log.warning("the log's end is not remembered", error=str(error))
                    complained = True
                self._written = end  # also if it failed: the next end is tried anew
            if stopping:
                return

    def _write(self, end: LogEnd) -> None:
        assert self._path is not None  # noqa: S101 - or there is no thread
        block = msgspec.json.encode(end).ljust(BLOCK_BYTES - 1) + b"\n"
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, block, 0)
            os.fdatasync(file)
        finally:
            os.close(file)


def _oldest_milliseconds(store: Store) -> int:
    """When the log had its first entry, or a later one if its beginning is in archive files; by the server's clock."""
    trimmed = store.archived()[1]
    return trimmed.milliseconds if trimmed > START else store.sizes()["first_milliseconds"]


def complain(lost: kernel.LogLost) -> None:
    """One line for people: what is gone, what is not, what happens now."""
    if lost.found == str(START):
        log.error(
            "the whole log was lost: Redis was emptied, or is another one",
            entries=lost.entries,
            up_to=lost.had,
            kept="what runs, and the manifests and Secrets in the state folder",
            now="a new log begins with what runs; back-offs and KubeEvents begin anew",
        )
    else:
        log.error(
            "the end of the log was lost: Redis has fewer entries than it had acknowledged",
            entries=lost.entries,
            had=lost.had,
            found=lost.found,
            kept="what runs, and the manifests and Secrets in the state folder",
            now="the log goes on from its end as found; what it does not know of what runs is adopted",
        )


def _read(path: Path, node: str) -> LogEnd | None:
    try:
        end = msgspec.json.decode(path.read_bytes(), type=LogEnd)
        Position.parse(end.at)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        log.warning(
            "the remembered end of the log cannot be read, and is passed over", file=str(path), error=str(error)
        )
        return None
    if end.node == node:
        return end
    # The kept manifests name their node as well: nothing of that node is adopted.
    log.warning(
        "the state folder was another node's: that node's log and pods are left alone",
        file=str(path),
        found=end.node,
        expected=node,
        to_go_on_with_it=f"--hostname-override={end.node}",
    )
    return None
