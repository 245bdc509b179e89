"""The keeper in a whole agent, under repeated kills and a stream of commands: no entry is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from operator import gt
from pathlib import Path
from random import Random
from typing import Self

import pytest

from chronolet.adapters.archive.places import place as archive_place
from chronolet.history.archives import NodeArchive
from chronolet.history.derived.folds import KindFold
from chronolet.history.state import state_at
from chronolet.keeper import actor as keeper
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import Acquired, StoreUnreachable
from chronolet.manifests import actor as manifests
from chronolet_schemas.envelope import START, Entry
from chronolet_schemas.keeper import LogTrimmed, ShardHeldAgain, ShardLetGo
from chronolet_schemas.keys import Keys, Shard
from chronolet_schemas.manifests import PodRefused
from tests.integration.process.support import MANIFESTS, NODE, Place, command, place
from tests.support.ports import free_port
from tests.support.scratch import HANG_SECONDS

COMMANDS = 6_000
KILLS = 6
TUNING = {"chunk": 600, "measure": 0.1, "snapshot": 300}
WEEK = 7 * 24 * 3600 * 1000


@pytest.fixture
def here() -> Iterator[Place]:
    with place() as opened:
        yield opened


class Witness:
    """Reads the log into a list while it is being written."""

    def __init__(self, store: RedisStore) -> None:
        self.seen: list[Entry] = []
        self._store = store
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def wait_for_answer(self, here: Place, number: int) -> None:
        """Wait until the log has the answer to this request."""
        answered = f"request-{number}"
        here.wait_until(lambda: any(one.cause == answered for one in self.seen[-2000:]), answered, 60)

    def _read(self) -> None:
        while not self._over.is_set():
            after = self.seen[-1].position if self.seen else START
            try:
                self.seen += self._store.wait(after, {}, 500, 100).log
            except StoreUnreachable:
                self._over.wait(0.05)


def send(store: RedisStore, first: int, count: int) -> None:
    for number in range(first, first + count):
        assert store.send(MANIFESTS, *command(f"request-{number}")) == "sent"


def cli(here: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    flags = ["--root-dir", str(here.root), "--hostname-override", NODE]
    argv = [sys.executable, "-m", "chronolet.cli", *arguments, *flags]
    return subprocess.run(argv, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)


def test_the_history_is_complete_after_repeated_kills(here: Place) -> None:
    agent = here.start(**TUNING)
    agent.wait_for_line("own redis-server")
    store = here.store()
    here.wait_until(lambda: bool(store.alive()), "a lease")
    with Witness(here.store()) as witness:
        share = COMMANDS // KILLS
        for kill in range(KILLS):
            send(store, kill * share, share)
            goal = (kill + 1) * share - share // 3
            here.wait_until(lambda goal=goal: len(witness.seen) > goal, f"{goal} entries beyond {len(witness.seen)}")
            agent.kill9()
            agent = here.start(**TUNING)
        sent = COMMANDS
        witness.wait_for_answer(here, sent - 1)
        # The number of trims depends on the backlog at each start of the agent: continue until there are enough.
        while len(here.events(store, LogTrimmed)) < 4 or store.archived()[1].n <= COMMANDS // 2:
            before = store.archived()
            send(store, sent, 700)
            sent += 700
            here.wait_until(lambda before=before: all(map(gt, store.archived(), before)), "one more round", 60)
            witness.wait_for_answer(here, sent - 1)
        agent.end()
        here.wait_until(lambda: witness.seen[-1].position == store.last(), "the witness")
    _judge(here, store, witness.seen, sent)
    _is_indexed(here, store)
    _recovers_without_snapshots(here, store, sent)
    _damage_is_named(here, store)


def _judge(here: Place, store: RedisStore, seen: list[Entry], sent: int) -> None:
    history = here.history(store)
    assert [entry.position.n for entry in history] == list(range(1, len(history) + 1))
    assert history == seen
    causes = [entry.cause for entry in history if entry.type == "manifests.PodRefused@1"]
    assert causes == [f"request-{number}" for number in range(sent)]
    archive = NodeArchive(archive_place("", here.root), NODE, store).current()
    assert len(archive.files()) >= 5
    # The agent may have been stopped after writing a file and before marking it: the next agent writes that file again.
    assert len(list(archive.read())) == archive.files()[-1][1].n >= store.archived()[0].n
    assert len(here.events(store, LogTrimmed)) >= 4
    in_stream = list(store.scan(START))
    assert in_stream[0].position.n > COMMANDS // 2
    # As many entries as fit into an archive file stay in the stream.
    assert len(in_stream) >= TUNING["chunk"]


def _is_indexed(here: Place, store: RedisStore) -> None:
    """What the keepers had no time to index, the command adds: they may have been killed before each."""
    archive = NodeArchive(archive_place("", here.root), NODE, store).current()
    indexed = cli(here, "archive", "index")
    assert indexed.returncode == 0, indexed
    assert cli(here, "archive", "index").stdout.endswith(
        f": {len(archive.files())} files, 0 written, 0 with a problem\n"
    )
    indexes = [name for name in archive.storage.names() if name.endswith(".index")]
    assert len(indexes) >= len(archive.needed()) > 3
    history, kinds = here.history(store), [manifests.kind(), keeper.kind()]
    for number in Random(5).sample(range(1, len(history) + 1), 8):
        expected = {kind.name: KindFold(kind) for kind in kinds}
        for entry in history[:number]:
            name, _, key = entry.entity.partition("/")
            if name in expected:
                expected[name].add(key, entry)
        found = state_at(
            store, NodeArchive(archive_place("", here.root), NODE, store), kinds, history[number - 1].position
        )
        assert found.states == {name: fold.states for name, fold in expected.items()}, number


def _recovers_without_snapshots(here: Place, store: RedisStore, sent: int) -> None:
    kinds = [manifests.kind(), keeper.kind()]
    archive = NodeArchive(archive_place("", here.root), NODE, store)
    before = state_at(store, archive, kinds)
    client = store._queries
    assert client.call("DEL", Keys(NODE).snapshot(MANIFESTS), Keys(NODE).snapshot(Shard("keeper"))) == 2
    assert state_at(store, archive, kinds).states == before.states
    agent = here.start(measure=600)
    send(store, sent, 1)
    request = f"request-{sent}"
    here.wait_until(lambda: any(entry.cause == request for entry in here.history(store)[-20:]), "an answer")
    # Only one kind is compared, because the keeper may have started another job.
    after = state_at(store, archive, kinds)
    assert after.states["manifests"] == before.states["manifests"]
    assert len(here.events(store, PodRefused)) == sent + 1
    agent.end()


def _damage_is_named(here: Place, store: RedisStore) -> None:
    archive = NodeArchive(archive_place("", here.root), NODE, store).current()
    path = Path(archive.storage.place(archive.files()[0].name))  # trimmed, so only this file has its entries
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert cli(here, "get", "pods").returncode == 0, "indexes and checkpoints make the file unnecessary"
    for derived in (*path.parent.glob("*.checkpoint"), *path.parent.glob("*.index")):
        derived.unlink()
    for arguments in (("get", "pods"), ("log",)):
        result = cli(here, *arguments)
        assert (result.returncode, str(path) in result.stderr) == (1, True), result
        assert len(result.stderr.splitlines()) == 1
    # The agent, too, logs one clear line for each shard, and does not act on an incomplete history.
    version = store.heads([MANIFESTS])[MANIFESTS].version
    agent = here.start(measure=600, port=free_port())
    here.wait_until(lambda: agent.log.count("shard quarantined") == 2, "both shards")
    assert str(path) in agent.log
    assert "Traceback" not in agent.log
    here.wait_until(lambda: "the process is without its history" in agent.get("/readyz")[1], "its state")
    assert f"manifests is quarantined: {path}" in agent.get("/readyz")[1]
    here.wait_until(lambda: not store.heads([MANIFESTS])[MANIFESTS].token, "the shard's being given back")
    assert agent.end() == 0
    assert store.heads([MANIFESTS])[MANIFESTS].version == version
    path.write_bytes(content)
    assert here.start(measure=600).wait_for_line("own redis-server")


def test_a_shard_without_owner_for_a_week_is_released_and_trimming_continues(here: Place) -> None:
    agent = here.start(**TUNING)
    agent.wait_for_line("own redis-server")
    store = here.store()
    here.wait_until(lambda: bool(store.alive()), "a lease")
    gone = Shard("prober", 2)
    assert isinstance(store.acquire(gone, "", "long-dead", 1), Acquired)
    send(store, 0, 2_000)
    here.wait_until(lambda: store.archived()[0].n > 1_000, "archives")
    here.wait_until(lambda: store.heads([gone])[gone].unowned_since > 0, "the detection of the missing owner")
    assert (store.archived()[1], here.events(store, ShardLetGo)) == (START, [])
    since = store.heads([gone])[gone].unowned_since - WEEK
    store._queries.call("HSET", Keys(NODE).shard(gone), "unowned_since", str(since))
    here.wait_until(lambda: store.archived()[1].n > 500, "trimming")
    (event,) = here.events(store, ShardLetGo)
    assert isinstance(event, ShardLetGo)
    assert (event.shard, abs(event.unowned_since - since) < 5_000) == ("prober/2", True)
    # Give the shard an owner again.
    store.renew("alive", "prober", 600_000)
    token = store.heads([gone])[gone].token
    assert isinstance(store.acquire(gone, token, "alive", 1, proof="lock"), Acquired)
    here.wait_until(lambda: bool(here.events(store, ShardHeldAgain)), "its return")
    agent.end()
    assert [entry.position.n for entry in here.history(store)] == list(range(1, store.last().n + 1))
