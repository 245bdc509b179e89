"""A node under attack: a server, its workers, a sender and a watcher, and the attacks on them.

Input: a private redis-server. Output: attacks, each of which waits until it has had its effect; at the end, the result
of the checks in `guarantees`, printed with its counts. Next: the tests, which set the number of attacks.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet_schemas.envelope import START, Entry, Position
from chronolet_schemas.keys import Shard, shards_of
from tests.kernel import mirror, tally
from tests.kernel.kill import guarantees
from tests.kernel.kill.farm import Farm
from tests.kernel.kill.sender import Sender
from tests.kernel.kill.watcher import Watcher
from tests.kernel.kill.worker import SHARDS, WorkerJob
from tests.support import redecided, scratch
from tests.support.patience import PATIENT
from tests.support.redis.server import PrivateRedis

Times = Callable[[int, int], range]
"""A function: `times(60, 500)` is a range of 60 numbers, or of 500 with --long."""

NODE = "n1"
KEYS = [f"k{number}" for number in range(12)]
ALL_SHARDS = [shard for kind, count in SHARDS.items() for shard in shards_of(kind, count)]

# A lease may expire at any moment, under its original name or its temporary one.
_MOVE = "if redis.call('EXISTS', {0}) == 1 then redis.call('RENAME', {0}, {1}) end\n"
_CORRUPT = _MOVE.format("KEYS[1]", "KEYS[2]") + "redis.call('RPUSH', KEYS[1], 'of the wrong type')"
_RESTORE = "redis.call('DEL', KEYS[1])\n" + _MOVE.format("KEYS[2]", "KEYS[1]")


class Node:
    """The server, workers, sender and watcher of one run, and the attacks on them. Workers are started with the `jobs`
    in turn.
    """

    def __init__(
        self, server: PrivateRedis, folder: Path, jobs: Sequence[WorkerJob], *, workers: int, sender_url: str
    ) -> None:
        self.server = server
        self.folder = folder
        self.done: Counter[str] = Counter()
        self.store = RedisStore(server.url, NODE, timeouts=PATIENT)
        self.farm = Farm()
        self._jobs = jobs
        for _ in range(workers):
            self.start_worker()
        scratch.wait_until(self._begun, "the log's first event")
        self.watcher = Watcher(server.url, NODE)
        self.sender = Sender(sender_url, NODE, KEYS, self.watcher.has_room)

    def start_worker(self) -> int:
        self.done["workers"] += 1
        return self.farm.start(self._jobs[self.done["workers"] % len(self._jobs)])

    # -- attacks -------------------------------------------------------------------------------------------------
    def kill_worker(self) -> None:
        """Kill a worker with kill -9 and start another in its place."""
        self.farm.kill9(self._victim())
        self.done["worker kills"] += 1
        self.start_worker()

    def stop_worker(self) -> None:
        """Stop a worker with SIGSTOP until its lease has expired and others own its shards; then send SIGCONT."""
        pid = self._victim()
        os.kill(pid, signal.SIGSTOP)
        held = self._processes(pid)
        scratch.wait_until(lambda: not self._processes(pid), f"the end of {pid}'s lease")
        scratch.wait_until(lambda: not held & self.owners(), "a takeover")
        os.kill(pid, signal.SIGCONT)
        self.done["stops"] += 1

    def drain_worker(self) -> None:
        """Drain a process until it owns nothing, and let it take its share again."""
        process = self._wait_for_owner()
        self.store.drain(process, drains=True)
        scratch.wait_until(lambda: process not in self.owners(), f"the drain of {process}")
        self.store.drain(process, drains=False)
        scratch.wait_until(lambda: process in self.owners(), f"the share of {process}")
        self.done["drains"] += 1

    def replace_worker(self) -> None:
        """End a worker with SIGTERM, which hands over its shards, and start another in its place."""
        pid = self._victim()
        self.farm.live.remove(pid)
        os.kill(pid, signal.SIGTERM)
        scratch.wait_until(lambda: scratch.start_time(pid) is None, f"the end of {pid}")
        self.done["replaced workers"] += 1
        self.start_worker()

    def moves(self) -> int:
        """Return how often a shard was handed over."""
        return sum(head.moves for head in self.store.heads(ALL_SHARDS).values())

    def _wait_for_owner(self) -> str:
        """Return a process that owns a shard and was not killed, once at least two of those own shards."""

        def owners() -> list[str]:
            pids = {process: int(info.rpartition(" ")[2]) for process, info in self.store.alive().items()}
            return sorted(one for one in self.owners() if pids.get(one) in self.farm.live)

        scratch.wait_until(lambda: len(owners()) > 1, "two owners")
        return random.choice(owners())

    def kill_server(self) -> None:
        """Kill redis-server with kill -9 and restart it with the data that it has kept on disk."""
        self.server.kill9()
        self.server.start()
        self.done["server kills"] += 1

    def lose_tail(self) -> None:
        """Kill the server while acknowledged writes are not on disk. The sender then resends the commands that the log
        lacks.
        """
        self.server.slow_down(3_600_000)  # the next kill loses writes only if no fsync ends before it
        self.server.wait_for_fsync()
        self.watcher.wait_for_more(20, 200)
        self.server.kill9()
        self.server.slow_down(0)
        with self.sender.gate.closed(), self.watcher.gate.closed():
            self.server.start()
            lost = self.watcher.compare()
            self.sender.send_again(self.watcher.answered())
        self.done["server kills"] += 1
        self.done["server kills with loss"] += lost > 0
        self.done["entries lost"] += lost

    def corrupt(self, key: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Replace a key with a list until a worker has logged an error about it and `meanwhile` has returned, then
        restore the key.
        """
        client = self.server.client()
        client.eval(_CORRUPT, 2, key, "kept aside")
        meanwhile()
        self.wait_for_log_line(f"{key} is a list")
        client.eval(_RESTORE, 2, key, "kept aside")
        self.done["corrupted keys"] += 1

    def wait_for_log_line(self, text: str) -> None:
        """Wait until a worker has logged a line that contains the text."""
        scratch.wait_until(lambda: text in self._logs(), f"a line about {text}")

    def load(self, least: int = 20, most: int = 200) -> None:
        """Wait until a random number of further inputs, from `least` to `most`, is consumed."""
        self.watcher.wait_for_more(least, most)

    def owners(self) -> set[str]:
        """Return the processes that own shards, with or without a lease."""
        return {head.token.partition(":")[2] for head in self.store.heads(self.shards()).values()}

    def shards(self) -> Sequence[Shard]:
        """Return the shards of the current layout."""
        return [shard for kind, count in self.store.layout().counts.items() for shard in shards_of(kind, count)]

    # -- the end -------------------------------------------------------------------------------------------------
    def settle(self) -> Sequence[Entry]:
        """Stop sending, wait until everything is idle, and return all entries."""
        self.sender.finish()
        self.watcher.wait_for(self.sender.total)
        try:
            scratch.wait_until(lambda: not self._pending(), "the last timers and notes")
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {self._pending()}") from error
        # A shard may change its owner at any time: read the log first, then the heads, which may be ahead of it.
        with self.watcher.gate.closed():
            return list(self.watcher.entries)

    def verdict(self, *, least: int, lossless: bool = True) -> Counter[str]:
        """Wait until everything is idle, then check the guarantees and print all counts. `least`: minimum number of
        inputs. `lossless`: whether the server lost nothing. Returns the number of calls of each type.
        """
        entries = self.settle()
        versions = {str(shard): head.version for shard, head in self.store.heads(self.shards()).items()}
        lines = guarantees.calls_of(self.folder)
        counts = guarantees.check_log(entries, self.sender.sent)
        calls = guarantees.check_steps(lines, versions, lossless=lossless)
        notes = guarantees.check_notes(self.folder, entries, lines, lost=self.done["entries lost"])
        errors = [path.read_text() for path in (self.folder / "errors").iterdir()]
        assert not errors, errors[0]
        if lossless:
            redecided.check(entries, [tally.kind(SHARDS["tally"]), mirror.kind(SHARDS["mirror"])])
        assert self.sender.total >= least, f"only {self.sender.total} inputs"
        figures = Counter(inputs=self.sender.total, doubts=self.sender.doubts, sent_again=self.sender.sent_again)
        report("attacks", self.done)
        report("sent", figures)
        report("log", counts)
        report("steps", calls)
        report("notes", notes)
        return calls

    def close(self) -> None:
        self.farm.end()
        self.watcher.stop()
        self.store.close()

    # -- inside --------------------------------------------------------------------------------------------------
    def _logs(self) -> str:
        return "\n".join(path.read_text() for path in (self.folder / "log").iterdir())

    def _begun(self) -> bool:
        try:
            return self.store.last().n > 0
        except StoreUnreachable:
            return False

    def _victim(self) -> int:
        """Return the pid of a worker that owns a shard, if there is any: killing a standby proves little."""
        try:
            owners, alive = self.owners(), self.store.alive()
        except (StoreUnreachable, StoreBroken):
            return random.choice(self.farm.live)
        pids = {int(info.rpartition(" ")[2]) for process, info in alive.items() if process in owners}
        self.done["owners hit"] += bool(pids & set(self.farm.live))
        return random.choice(sorted(pids & set(self.farm.live)) or self.farm.live)

    def _processes(self, pid: int) -> set[str]:
        """Return the ids of the kernel processes with a lease that run in the worker with this pid."""
        return {process for process, info in self.store.alive().items() if info.endswith(f" {pid}")}

    def _pending(self) -> list[str]:
        """Return one line for each timer that has not fired yet and for each note that has not been taken yet."""
        with self.watcher.gate.closed():
            last = {(entry.type.partition("@")[0], entry.entity): entry.position for entry in self.watcher.entries}

        def at(event: str, key: str) -> Position:
            return last.get((f"tally.{event}", f"tally/{key}"), START)

        return [
            f"{key}: no {later} after {earlier}"
            for key in KEYS
            for earlier, later in (("Added", "Rested"), ("NoteRequested", "NoteTaken"))
            if at(later, key) < at(earlier, key)
        ]


def report(title: str, counts: Counter[str]) -> None:
    """Print all counts on one line of the test's output."""
    print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))  # noqa: T201


@contextmanager
def attacked(
    server: PrivateRedis, jobs: Sequence[Mapping[str, Any]] = ({},), *, workers: int = 3, sender_url: str = ""
) -> Iterator[Node]:
    """Run a node on this server, and stop it at the end. `jobs`: for each worker in turn, the fields of its `WorkerJob`
    that differ from the defaults.
    """
    started = time.monotonic()
    folder = server.folder / "workers"
    for name in ("calls", "crash", "errors", "locks", "log"):
        (folder / name).mkdir(parents=True)
    base = WorkerJob(url=server.url, node=NODE, folder=str(folder))
    each = [msgspec.structs.replace(base, **job) for job in jobs]
    node = Node(server, folder, each, workers=workers, sender_url=sender_url or server.url)
    try:
        yield node
    finally:
        node.close()
        print(f"took {time.monotonic() - started:.1f} s")  # noqa: T201
