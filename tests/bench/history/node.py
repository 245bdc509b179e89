"""A node with a long past: a real Redis with the newest entries, and an archive in a folder, without an agent.

Input: the number of events. Output: `Past`. Next: `parts`.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.cli.services import pure_kinds
from chronolet.history.archives import NodeArchive
from chronolet.history.derived.checkpoint import KINDS
from chronolet.history.derived.upkeep import Upkeep
from chronolet.kernel.log.archive import Archive
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec, kernel
from chronolet_schemas.envelope import FIELDS, START, Entry, Position
from chronolet_schemas.keys import Keys
from tests.bench.history.million import long_history
from tests.bench.history.recorded_entries import NODE, recorded_entries
from tests.support.redis.server import PrivateRedis, private_redis

FILE_ENTRIES = 20_000
"""The keeper's number of entries in a file; the stream has those of the last file, and what follows it."""
EARLIER = 7 * 24 * 3_600_000
"""By how many milliseconds the history precedes the recording, so that all of it is in the past."""
_PIPELINED = 500


class Past(NamedTuple):
    """A node with a long past. Times are in seconds of CPU time."""

    server: PrivateRedis
    store: RedisStore
    archive: Archive
    node_archive: NodeArchive
    events: int
    first: Position
    last: Position
    write_seconds: float
    """The time that writing the archive files took."""
    index_seconds: float
    """The time that writing the indexes and checkpoints took."""

    @property
    def flags(self) -> Sequence[str]:
        """The flags that select this node."""
        return ("--redis", self.server.url, "--root-dir", str(self.root), "--hostname-override", NODE)

    @property
    def root(self) -> Path:
        return self.server.folder / "root"

    def size(self, suffix: str) -> int:
        """Return the bytes of the archive's files with this ending."""
        folder = Path(self.archive.storage.place())
        return sum(path.stat().st_size for path in folder.glob(f"*{suffix}"))


@contextmanager
def long_past(events: int) -> Iterator[Past]:
    """Run the server of a node with this many events during the block."""
    with private_redis() as server:
        print(f"==> history: writing {events:,} events", file=sys.stderr, flush=True)  # noqa: T201
        run = codec.decode(recorded_entries()[0].type, recorded_entries()[0].data, kernel.LogStarted).run
        archive = Archive(FolderStorage(server.folder / "root/archive", run), NODE, run)
        store = RedisStore(server.url, NODE)
        store.check()
        positions, spent = _write(server, archive, events)
        begun = time.process_time()
        for outcome in Upkeep(archive, lambda: pure_kinds(KINDS)).run():
            assert not outcome.problem, outcome
        indexed = time.process_time() - begun
        node_archive = NodeArchive(lambda _: archive.storage, NODE, store)
        try:
            yield Past(server, store, archive, node_archive, events, *positions, spent, indexed)
        finally:
            store.close()


def _write(server: PrivateRedis, archive: Archive, events: int) -> tuple[tuple[Position, Position], float]:
    """Write the archive, all but the newest entries; the stream has those, and the last file's.

    Return the first and the last position, and the CPU seconds that the archive files took.
    """
    history = long_history(recorded_entries(), events, EARLIER)
    files = events // FILE_ENTRIES - 1
    first, trimmed, archived, spent = START, START, START, 0.0
    for number in range(files):
        part = list(itertools.islice(history, FILE_ENTRIES))
        first = first if number else part[0].position
        begun = time.process_time()
        archive.write(part, archived)
        spent += time.process_time() - begun
        trimmed, archived = archived, part[-1].position
    last = _stream(server, archive.run, [*part, *history], archived, trimmed)
    return (first, last), spent


def _stream(
    server: PrivateRedis, run: str, entries: Sequence[Entry], archived: Position, trimmed: Position
) -> Position:
    """Write the newest part of the log as the agent's store does."""
    client, keys = server.client(timeout=60), Keys(NODE)
    started = codec.decode(recorded_entries()[0].type, recorded_entries()[0].data, kernel.LogStarted)
    shards = {f"shards:{kind}": count for kind, count in started.shards.items()}
    meta: dict[Any, Any] = {"run": run, "archived": str(archived), "trimmed": str(trimmed), **shards}
    client.hset(keys.meta, mapping=meta)
    for begin in range(0, len(entries), _PIPELINED):
        pipe = client.pipeline(transaction=False)
        for entry in entries[begin : begin + _PIPELINED]:
            pipe.xadd(keys.log, dict(zip(FIELDS, entry[1:], strict=True)), id=str(entry.position))
        pipe.execute()
    client.close()
    return entries[-1].position
