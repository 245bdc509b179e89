"""Starts and stops the kernel's process, reads its output, and commits to a shard from this process.

Input: a redis-server's URL. Output: `Child`, whose output lines and times are read; `Writer`, which owns a shard
without being a host.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Acquired, Committed, Step
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import Position, Record
from chronolet_schemas.keys import Shard
from tests.bench.kernel import gauge

REPOSITORY = Path(__file__).resolve().parents[3]


class Child:
    """A kernel process whose output is read line by line."""

    def __init__(self, url: str, node: str, kinds: Sequence[str], locks: Path, name: str = "") -> None:
        self.name = name
        command = [sys.executable, "-m", "tests.bench.kernel.process", url, node, ",".join(kinds), str(locks)]
        command += [name] if name else []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY)

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> tuple[str, int]:
        """Read the next output line: word and time (monotonic, nanoseconds). Raises EOFError if the process ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"the kernel's process ended with status {self.process.wait()}")
        word, at = line.split()
        return word.decode(), int(at)

    def running(self) -> int:
        """Wait until the process hosts its shards, skipping earlier output of effects; return the time at which hosting
        began.
        """
        while True:
            word, at = self.line()
            if word == "running":
                return at

    def kill(self) -> None:
        """Send SIGKILL to the process and wait for its exit."""
        self.process.kill()
        self._reap()

    def stop(self) -> None:
        """Stop the process cleanly."""
        self.process.terminate()
        self._reap()

    def _reap(self) -> None:
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def hosting(url: str, node: str, kinds: Sequence[str], locks: Path, name: str = "") -> Iterator[Child]:
    """Run a kernel process, and kill it at the end."""
    child = Child(url, node, kinds, locks, name)
    try:
        child.running()
        yield child
    finally:
        child.kill()


class Writer:
    """Owns one shard and commits records through the real step."""

    def __init__(self, store: RedisStore, shard: Shard) -> None:
        self._store = store
        self._shard = shard
        head = store.heads([shard])[shard]
        answer = store.acquire(shard, head.token, f"bench-{uuid.uuid4().hex}", registry.SCHEMA, proof="lock")
        assert isinstance(answer, Acquired), answer
        self._head = answer.head
        self._version = answer.head.version
        self._cursor = answer.head.log_cursor
        self.actor = f"{shard}#{answer.head.token.partition(':')[0]}"
        self.token = answer.head.token

    def commit(self, records: Sequence[Record], cursor: Position | None = None) -> Committed:
        """Commit one step with these records; with `cursor`, also move the shard's log cursor."""
        new_cursor = cursor or self._cursor
        step = Step(
            shard=self._shard,
            token=self.token,
            version=self._version,
            step_id=uuid.uuid4().hex,
            schema=registry.SCHEMA,
            log_cursor=self._cursor,
            new_log_cursor=new_cursor,
            mail_cursor=self._head.mail_cursor,
            new_mail_cursor=self._head.mail_cursor,
            records=tuple(records),
        )
        answer = self._store.step(step)
        assert isinstance(answer, Committed), answer
        self._version, self._cursor = answer.version, new_cursor
        return answer


def begin(store: RedisStore, node: str, shards: Mapping[str, int] = gauge.SHARDS) -> None:
    """Load the kernel's functions into Redis and start the node's log."""
    store.check()
    started = kernel.LogStarted(run=uuid.uuid4().hex, node=node, shards=dict(shards))
    record = Record(registry.type_of(kernel.LogStarted), f"node/{node}", "", "bench", "", codec.encode(started))
    store.begin(started.run, shards, record)
