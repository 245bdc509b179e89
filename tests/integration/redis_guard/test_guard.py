"""The agent's own redis-server, with whole agents: it outlives them, is restarted, and gets disk space from the
reserve.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import StoreUnreachable
from chronolet_schemas.kernel import BallastGivenUp, BallastRestored, ShardTakenOver
from chronolet_schemas.manifests import PodRefused
from tests.integration.process.support import MANIFESTS, PATIENT, Agent, Place, command, place
from tests.support import scratch
from tests.support.log_lines import most_repeated
from tests.support.machine.frozen import stopped
from tests.support.scratch import HANG_SECONDS

MEBIBYTE = 1 << 20
MODES = pytest.mark.parametrize("mode", ["always", "everysec"])


@pytest.fixture
def here() -> Iterator[Place]:
    with place() as opened:
        yield opened


def up(here: Place, **settings: object) -> tuple[Agent, RedisStore]:
    """Start an agent; return it with a store for the test."""
    agent = here.start(**settings)
    agent.wait_for_line("own redis-server")
    return agent, here.store()


class Sender:
    """Sends commands one by one, and sends a command again if its reply was lost."""

    def __init__(self, here: Place, store: RedisStore) -> None:
        self._here = here
        self._store = store
        self.requests: list[str] = []

    def send(self, count: int, seconds: float = 20) -> None:
        for _ in range(count):
            request = f"request-{len(self.requests)}"
            self.requests.append(request)
            deadline = time.monotonic() + scratch.hang_limit(seconds)
            while not self._sent(request):
                assert time.monotonic() < deadline, f"{request} could not be sent"
        self._here.wait_until(lambda: self._answered() == self.requests, "all answers", seconds)

    def _sent(self, request: str) -> bool:
        try:
            return self._store.send(MANIFESTS, *command(request)) in ("sent", "duplicate")
        except StoreUnreachable:
            time.sleep(0.01)
            return False

    def _answered(self) -> list[str]:
        try:
            return [entry.cause for entry in self._here.history(self._store) if entry.type.startswith("manifests.Pod")]
        except StoreUnreachable:
            return []


def no_gap(here: Place, store: RedisStore) -> bool:
    history = here.history(store)
    return [entry.position.n for entry in history] == list(range(1, len(history) + 1))


def errors(agent: Agent) -> list[str]:
    assert "Traceback" not in agent.log, agent.log
    return [line for line in agent.lines if "[error" in line]


# -- life cycle -----------------------------------------------------------------------------------------------------
@MODES
def test_the_server_outlives_its_agent_and_the_next_one_uses_it(here: Place, mode: str) -> None:
    agent, store = up(here, redis_appendfsync=mode)
    pid = here.redis_pid()
    assert f"how=started pid={pid}" in agent.wait_for_line("own redis-server")
    assert store._queries.call("CONFIG", "GET", "appendfsync") == [b"appendfsync", mode.encode()]
    sender = Sender(here, store)
    sender.send(3)
    assert agent.end() == 0
    assert here.redis_pid() == pid
    agent, _ = up(here, redis_appendfsync=mode)
    assert f"how=adopted pid={pid}" in agent.wait_for_line("own redis-server")
    sender.send(3)
    agent.kill9()
    agent, _ = up(here, redis_appendfsync=mode)
    assert f"how=adopted pid={pid}" in agent.wait_for_line("own redis-server")
    sender.send(3)
    assert no_gap(here, store)


@MODES
def test_a_killed_server_is_restarted_and_no_step_is_lost(here: Place, mode: str) -> None:
    agent, store = up(here, redis_appendfsync=mode)
    sender = Sender(here, store)
    kills = 4
    for _ in range(kills):
        sender.send(20)
        before = here.kill_redis()
        here.wait_until(lambda before=before: here.redis_pid() not in (0, before), "another server")
        sender.send(1)
    sender.send(20)
    assert agent.process.poll() is None
    assert len(here.events(store, PodRefused)) == len(sender.requests) == 104
    assert no_gap(here, store)
    assert most_repeated(agent.lines) <= 2 * kills, agent.log
    assert len(agent.lines) < 30 * kills, agent.log
    assert "Traceback" not in agent.log


def test_a_server_killed_with_its_agent_is_started_by_the_next(here: Place) -> None:
    agent, store = up(here)
    sender = Sender(here, store)
    sender.send(5)
    agent.kill9()
    here.kill_redis()
    agent, _ = up(here)
    assert "how=started" in agent.wait_for_line("own redis-server")
    sender.send(5)
    assert no_gap(here, store)


# -- choice of server ---------------------------------------------------------------------------------------------
OLD = "#!/bin/sh\necho 'Redis server v=6.0.16 sha=00000000:0 malloc=libc bits=64'\n"
ODD = "#!/bin/sh\nexit 3\n"


@pytest.mark.parametrize(("script", "finding"), [(OLD, "is version 6.0.16"), (ODD, "does not start")])
def test_a_wrong_server_on_path_is_reported_in_one_line(here: Place, script: str, finding: str) -> None:
    programs = here.disk / "bin"
    programs.mkdir()
    program = programs / "redis-server"
    program.write_text(script)
    program.chmod(0o755)
    agent = here.start(environ={"PATH": str(programs)})
    assert agent.process.wait(timeout=HANG_SECONDS) == 1
    (line,) = errors(agent)
    assert f"no redis-server or valkey-server of version 7.0 or newer ({program} {finding})" in line
    assert "apt-get install redis-server" in line


# -- the state folder ----------------------------------------------------------------------------------------------
def test_a_state_folder_that_cannot_be_created_is_reported_in_one_line(here: Place) -> None:
    here.root.write_text("a file")
    agent = here.start()
    assert agent.process.wait(timeout=HANG_SECONDS) == 1
    (line,) = errors(agent)
    assert f"--root-dir {here.root}: cannot be written: " in line


def test_an_unusable_redis_folder_is_reported_in_one_line(here: Place) -> None:
    here.root.mkdir()
    (here.root / "redis").write_text("a file")
    agent = here.start()
    assert agent.process.wait(timeout=HANG_SECONDS) == 1
    (line,) = errors(agent)
    assert str(here.root / "redis") in line


# -- a full disk ---------------------------------------------------------------------------------------------------
@pytest.fixture
def small() -> Iterator[Place]:
    with place(disk=64 * MEBIBYTE) as opened:
        yield opened


@MODES
def test_a_full_disk_uses_the_disk_reserve_and_loses_no_log_entry(small: Place, mode: str) -> None:
    agent, store = up(small, redis_appendfsync=mode, reserve=16 * MEBIBYTE, rest=1.0)
    reserve = small.root / "ballast"
    small.wait_until(reserve.exists, "a reserve")
    sender = Sender(small, store)
    sender.send(5)
    assert small.events(store, BallastRestored) == []
    # While the disk is being filled, the agent must not release its reserve, because that would be filled, too.
    with stopped([agent.pid]):
        filler = small.fill_disk()
    sender.send(50, 30)
    small.wait_until(lambda: bool(small.events(store, BallastGivenUp)), "the event")
    (gone,) = small.events(store, BallastGivenUp)
    assert isinstance(gone, BallastGivenUp)
    assert gone.freed_bytes == 16 * MEBIBYTE
    assert not reserve.exists()
    sender.send(5)
    filler.unlink()
    small.wait_until(lambda: bool(small.events(store, BallastRestored)), "the restored reserve")
    assert reserve.stat().st_size == 16 * MEBIBYTE
    sender.send(5)
    assert len(small.events(store, BallastGivenUp)) == len(small.events(store, BallastRestored)) == 1
    assert len(small.events(store, PodRefused)) == len(sender.requests)
    assert no_gap(small, store)
    assert agent.process.poll() is None
    assert "Traceback" not in agent.log


@MODES
def test_an_agent_that_starts_on_a_full_disk_releases_its_reserve(small: Place, mode: str) -> None:
    agent, store = up(small, redis_appendfsync=mode, reserve=16 * MEBIBYTE)
    small.wait_until((small.root / "ballast").exists, "a reserve")
    sender = Sender(small, store)
    sender.send(5)
    agent.kill9()
    small.kill_redis()
    small.fill_disk()
    up(small, redis_appendfsync=mode, reserve=16 * MEBIBYTE)
    sender.send(50, 30)
    small.wait_until(lambda: bool(small.events(store, BallastGivenUp)), "the event")
    assert len(small.events(store, PodRefused)) == len(sender.requests)
    assert no_gap(small, store)


def test_a_reserve_released_before_a_crash_is_reported_by_the_next_agent(small: Place) -> None:
    agent, store = up(small, reserve=16 * MEBIBYTE, rest=1.0)
    reserve = small.root / "ballast"
    small.wait_until(reserve.exists, "a reserve")
    agent.kill9()
    reserve.unlink()
    filler = small.disk / "half"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 40 * MEBIBYTE)
    agent, _ = up(small, reserve=16 * MEBIBYTE, rest=1.0)
    small.wait_until(lambda: bool(small.events(store, BallastGivenUp)), "the event")
    filler.unlink()
    small.wait_until(lambda: bool(small.events(store, BallastRestored)), "its return")


# -- two agents ----------------------------------------------------------------------------------------------------
def owners(store: RedisStore) -> set[str]:
    return {store.heads([MANIFESTS])[MANIFESTS].token.partition(":")[2]}


def test_a_second_agent_takes_over_immediately(here: Place) -> None:
    first, store = up(here, **PATIENT)
    sender = Sender(here, store)
    sender.send(3)
    owner = owners(store)
    second, _ = up(here, **PATIENT)
    assert f"how=adopted pid={here.redis_pid()}" in second.wait_for_line("own redis-server")
    here.wait_until(lambda: len(store.alive()) == 2, "two leases")
    sender.send(10)
    assert owners(store) == owner
    assert here.events(store, ShardTakenOver) == []
    first.kill9()
    here.wait_until(lambda: owners(store) != owner, "a take-over")
    sender.send(3)
    here.wait_until(lambda: bool(here.events(store, ShardTakenOver)), "the take-over's event")
    taken = here.events(store, ShardTakenOver)
    assert {event.proof for event in taken if isinstance(event, ShardTakenOver)} == {"lock"}
    assert len(taken) in (1, 2), "the second agent may have been given the other shard, the keeper's, before"
    # The second agent guards the server that the first one started.
    before = here.kill_redis()
    here.wait_until(lambda: here.redis_pid() not in (0, before), "another server")
    sender.send(3)
    assert no_gap(here, store)


def test_two_guards_start_one_server(here: Place) -> None:
    first, store = up(here)
    up(here)
    for _ in range(5):
        before = here.kill_redis()
        here.wait_until(lambda before=before: here.redis_pid() not in (0, before), "another server")
        Sender(here, store)
        here.wait_until(lambda: bool(_alive(store)), "leases")
    servers = [pid for pid in scratch.pids_naming(str(here.root)) if _comm(pid).startswith("redis-server")]
    assert servers == [here.redis_pid()]
    assert first.process.poll() is None


def _alive(store: RedisStore) -> object:
    try:
        return store.alive()
    except StoreUnreachable:
        return None


def _comm(pid: int) -> str:
    """Return the name of a process's program; empty if the process has exited."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""
