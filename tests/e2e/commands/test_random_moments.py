"""`--at` shows any moment as it was shown then: on a busy node whose two processes are killed, and whose Redis loses
its newest entries.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import kernel
from tests.e2e.chaos.churn import Churn, wait_for_changes
from tests.e2e.commands.moments import check, dump
from tests.e2e.node import Node
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import PrivateRedis, private_redis

MOMENTS, LONG_MOMENTS = 8, 100
LONG_SECONDS = 3600
SEED = 17


class Scene:
    """A busy node, and what has been done to it."""

    def __init__(self, engine: PrivateDocker, server: PrivateRedis) -> None:
        self.server = server
        self.node = Node(engine, server.url, server.folder.name.removeprefix("chronolet-"), server.folder / "agent")
        self.churn = Churn(self.node, SEED)
        self.done: Counter[str] = Counter()
        self.dumps: list[tuple[str, list[Any]]] = []

    def start(self) -> None:
        self.churn.start()
        self.other = self.node.start_named("other")

    def kill_agent(self) -> None:
        self.node.kill9()
        self.node.start()

    def kill_other(self) -> None:
        self.other.kill()
        self.other.wait()
        self.other = self.node.start_named("other")

    def lose_newest_entries(self) -> None:
        """Kill Redis while acknowledged writes are not on its disk; the moment before is lost with them."""
        self.server.slow_down(3_600_000)  # only writes during an fsync can be lost
        self.server.wait_for_fsync()
        self.dumps.append(dump(self.node))
        before = self._last()
        self.server.kill9()
        self.server.slow_down(0)
        self.server.start()
        self.done["entries lost"] += max(before - self._last(), 0)
        self.node.reopen_journal()

    def let_be(self) -> None:
        """Disturb nothing."""

    def _last(self) -> int:
        with closing(RedisStore(self.server.url, self.node.name)) as store:
            return store.last().n


@contextmanager
def busy_node(engine: PrivateDocker) -> Iterator[Scene]:
    with private_redis(appendfsync="everysec", slow_fsync=True) as server:
        scene = Scene(engine, server)
        try:
            scene.start()
            yield scene
        finally:
            scene.churn.pause()
            scene.node.close()


@pytest.mark.timeout(1200)
def test_random_moments(docker_engine: PrivateDocker) -> None:
    visit(docker_engine, MOMENTS, 0)


@pytest.mark.long
@pytest.mark.timeout(3 * LONG_SECONDS)
def test_a_hundred_random_moments_of_an_hour(docker_engine: PrivateDocker) -> None:
    visit(docker_engine, LONG_MOMENTS, LONG_SECONDS)


def visit(engine: PrivateDocker, moments: int, seconds: float) -> None:
    """Visit random moments, over this time, and each of them again at the end."""
    choose = random.Random(SEED)
    with busy_node(engine) as scene:
        disturbances = (scene.kill_agent, scene.let_be, scene.kill_other, scene.lose_newest_entries)
        for number in range(moments):
            disturbances[number % len(disturbances)]()
            wait_for_changes(scene.node, scene.churn, changes=choose.randrange(1, 6), lines=1)
            time.sleep(choose.uniform(0, 2 * seconds / moments))
            scene.dumps.append(dump(scene.node))
        while not scene.done["entries lost"]:  # an fsync that ended in time saved them
            scene.lose_newest_entries()
        scene.churn.pause()
        scene.node.reopen_journal(archived=True)
        scene.node.journal.catch_up()
        in_log = {str(line.entry.position) for line in scene.node.journal.lines}
        kept = [one for one in scene.dumps if one[0] in in_log]
        assert len(kept) >= moments * 3 / 4
        assert len({position for position, _ in kept}) > moments / 2, "too few different moments"
        assert scene.node.journal.events(kernel.ShardTakenOver)
        check(scene.node, kept)
        lost = len(scene.dumps) - len(kept)
        print(f"{len(kept)} moments in a log of {len(in_log)} entries; {lost} lost, {dict(scene.done)}")  # noqa: T201
