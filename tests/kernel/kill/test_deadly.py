"""A message or effect that ends the process at every start is given up after three attempts; one that a kill -9
happens to hit never is.
"""

import multiprocessing
import random
import time
from collections.abc import Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from chronolet.kernel.step.suspects import PREFIX
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import START, Command, Entry, Event
from chronolet_schemas.keys import Keys, Shard
from tests.kernel import chore
from tests.kernel.chore import Tell
from tests.kernel.kill import deadly
from tests.kernel.rig import request
from tests.support import scratch
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS

CHORE = Shard("chore")
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.kernel.kill.deadly"])


class World:
    """One node, whose process is restarted each time it ends."""

    def __init__(self, server: PrivateRedis, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.store = RedisStore(server.url, deadly.NODE)
        self.process: ForkServerProcess | None = None
        self.deaths = 0
        self.starts = 0

    def start(self) -> ForkServerProcess:
        self.process = FORKS.Process(target=deadly.run, args=(self.server.url, self.folder), daemon=True)
        self.process.start()
        self.starts += 1
        return self.process

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join(HANG_SECONDS)
        self.store.close()

    def send(self, command: Command) -> str:
        name = registry.type_of(type(command))
        entity = f"chore/{command.key}"  # type: ignore[attr-defined]
        assert self.store.send(CHORE, name, entity, command.request, codec.encode(command)) == "sent"
        return command.request

    def entries(self, event: type[Event]) -> list[Entry]:
        name = registry.type_of(event)
        return [entry for entry in self.store.scan(START) if entry.type == name]

    def run_until(self, event: type[Event], count: int) -> None:
        """Restart the process as a service manager does, until the log has `count` of these events."""
        self.start()

        def there() -> bool:
            assert self.process is not None
            if self.process.exitcode is not None:
                assert self.process.exitcode == deadly.DIED
                self.deaths += 1
                self.start()
            return len(self.entries(event)) >= count

        scratch.wait_until(there, f"{count} {event.__name__} after {self.deaths} ends", HANG_SECONDS)

    def stop(self) -> None:
        """Stop the process cleanly; it must not have ended before."""
        assert self.process is not None
        assert self.process.exitcode is None, "it ended once more"
        self.process.terminate()
        self.process.join(HANG_SECONDS)
        assert self.process.exitcode == 0


@pytest.fixture
def world(redis_server: PrivateRedis, tmp_path: Path) -> Iterator[World]:
    made = World(redis_server, tmp_path)
    try:
        start_and_tell(made)
        made.stop()
        yield made
    finally:
        made.end()


def others(world: World) -> list[str]:
    """Start four healthy entities, each with an effect."""
    return [world.send(Tell(request=request(), key=f"well-{number}", wish=f"w{number}")) for number in range(4)]


def dead_letter(world: World) -> kernel.MessageDeadLettered:
    (entry,) = world.entries(kernel.MessageDeadLettered)
    return codec.decode(entry.type, entry.data, kernel.MessageDeadLettered)


def causes(world: World, event: type[Event]) -> list[str]:
    return [entry.cause for entry in world.entries(event)]


def test_a_message_that_ends_the_process_is_given_up_after_three_tries(world: World) -> None:
    before = others(world)
    garbage = {"type": "chore.Tell@1", "entity": "chore/x", "request": "odd", "data": b"\xc1"}
    world.server.client().xadd(Keys(deadly.NODE).mailbox(CHORE), garbage)  # type: ignore[arg-type]
    fatal = world.send(Tell(request=request(), key="bad", raises=True))
    behind = [*others(world), world.send(Tell(request=request(), key="bad"))]
    world.run_until(chore.Told, 10)
    letter = dead_letter(world)
    assert (letter.source, letter.at, letter.tries) == ("mailbox", fatal, 3)
    # The first end is nobody's: nothing was marked then.
    assert world.deaths == 4
    assert causes(world, chore.Told)[1:] == [*before, *behind]
    assert len(world.entries(kernel.EntryQuarantined)) == 1
    scratch.wait_until(lambda: len(world.entries(chore.Answered)) == 4, "the effects", HANG_SECONDS)
    scratch.wait_until(lambda: not world.store.heads([CHORE])[CHORE].tries, "no tries left", HANG_SECONDS)
    world.stop()


def test_a_timer_that_ends_the_process_is_given_up_after_three_tries(world: World) -> None:
    world.send(Tell(request=request(), key="bad", due=deadly.DEADLY_DUE))
    world.run_until(kernel.MessageDeadLettered, 1)
    assert world.deaths == 4
    assert dead_letter(world).message == "chore.Due"
    others(world)
    scratch.wait_until(lambda: len(world.entries(chore.Answered)) == 4, "the other entities' effects", HANG_SECONDS)
    world.stop()
    for _ in range(2):  # after a clean end it is given up still
        start_and_tell(world)
        world.stop()
    assert len(world.entries(kernel.MessageDeadLettered)) == 1
    world.send(Tell(request=request(), key="bad", due=deadly.DEADLY_DUE - 1))
    world.run_until(chore.Rang, 1)
    world.stop()
    assert world.deaths == 4, "another time is another timer"
    start_and_tell(world)
    scratch.wait_until(lambda: not world.store.heads([CHORE])[CHORE].tries, "no tries left", HANG_SECONDS)
    world.stop()


def start_and_tell(world: World) -> None:
    """Start the process and wait until it has decided something."""
    world.start()
    told = len(world.entries(chore.Told))
    world.send(Tell(request=request(), key="well-0"))
    scratch.wait_until(lambda: len(world.entries(chore.Told)) > told, "work", HANG_SECONDS)


def test_an_effect_that_ends_the_process_is_given_up_after_three_tries(world: World) -> None:
    others(world)
    fatal = world.send(Tell(request=request(), key="deadly", wish="w"))
    world.run_until(chore.GaveUp, 1)
    assert world.deaths == 4
    letter = dead_letter(world)
    assert (letter.source, letter.message, letter.tries) == ("signal", "chore.OneShot", 3)
    assert letter.at.startswith(f"{PREFIX}OneShot:deadly:wish:w")
    (gave_up,) = (codec.decode(one.type, one.data, chore.GaveUp) for one in world.entries(chore.GaveUp))
    assert gave_up.error == "the process ended three times while it ran"
    ((_, kept),) = cast(Any, world.server.client().xrange(Keys(deadly.NODE).dead))
    assert msgspec.msgpack.decode(kept[b"data"]) == {"subject": "wish", "intent": "w"}
    (told,) = (entry for entry in world.entries(chore.Told) if entry.cause == fatal)
    assert [entry.cause for entry in world.entries(kernel.MessageDeadLettered)] == [str(told.position)]
    scratch.wait_until(lambda: len(world.entries(chore.Answered)) == 4, "the other entities' effects", HANG_SECONDS)
    world.send(Tell(request=request(), key="deadly"))
    scratch.wait_until(lambda: len(world.entries(chore.Told)) == 7, "the entity at work again", HANG_SECONDS)
    world.stop()


def test_twenty_kills_while_it_works_give_nothing_up(world: World) -> None:
    sent: list[str] = []
    kills = random.Random(7)
    for number in range(20):
        process = world.start()
        told = len(world.entries(chore.Told))
        sent += [world.send(Tell(request=request(), key=f"k{turn}", wish=f"{number}/{turn}")) for turn in range(5)]
        # At work, whatever the machine does besides; then at any moment.
        scratch.wait_until(lambda told=told: len(world.entries(chore.Told)) > told, "work", HANG_SECONDS)  # type: ignore[misc]
        time.sleep(kills.random() * 0.05)
        process.kill()
        process.join(HANG_SECONDS)
    start_and_tell(world)
    scratch.wait_until(lambda: len(world.entries(chore.Told)) == 102, "all of it told", HANG_SECONDS)
    assert causes(world, chore.Told)[1:-1] == sent
    assert world.entries(kernel.MessageDeadLettered) == []
    assert world.entries(chore.GaveUp) == []
    last = {f"k{turn}": f"19/{turn}" for turn in range(5)}
    scratch.wait_until(
        lambda: (
            {codec.decode(one.type, one.data, chore.Answered).wish for one in world.entries(chore.Answered)}
            >= set(last.values())
        ),
        "the newest effects",
        HANG_SECONDS,
    )
    world.stop()
