"""A message, timer or effect that ends the process on every start is given up after three attempts; one that was merely
in progress at a kill -9 is never given up.
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
from tests.kernel.chore import Assign
from tests.kernel.kill import fatal
from tests.kernel.rig import request
from tests.support import scratch
from tests.support.patience import PATIENT
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS

CHORE = Shard("chore")
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.kernel.kill.fatal"])


class RestartedNode:
    """A node whose process the test starts; `run_until` restarts it each time it ends."""

    def __init__(self, server: PrivateRedis, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.store = RedisStore(server.url, fatal.NODE, timeouts=PATIENT)
        self.process: ForkServerProcess | None = None
        self.deaths = 0
        self.starts = 0

    def start(self) -> ForkServerProcess:
        self.process = FORKS.Process(target=fatal.run, args=(self.server.url, self.folder), daemon=True)
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
        """Start the process, and restart it whenever it ends, as a service manager does, until the log has `count` of
        these events.
        """
        self.start()

        def there() -> bool:
            assert self.process is not None
            if self.process.exitcode is not None:
                assert self.process.exitcode == fatal.DIED
                self.deaths += 1
                self.start()
            return len(self.entries(event)) >= count

        scratch.wait_until(there, f"{count} {event.__name__} after {self.deaths} ends", HANG_SECONDS)

    def stop(self) -> None:
        """Stop the process cleanly. It must not have ended by itself before."""
        assert self.process is not None
        assert self.process.exitcode is None, "it ended again"
        self.process.terminate()
        self.process.join(HANG_SECONDS)
        assert self.process.exitcode == 0


@pytest.fixture
def node(redis_server: PrivateRedis, tmp_path: Path) -> Iterator[RestartedNode]:
    made = RestartedNode(redis_server, tmp_path)
    try:
        start_and_assign(made)
        made.stop()
        yield made
    finally:
        made.end()


def healthy(node: RestartedNode) -> list[str]:
    """Send commands for four healthy entities, each with an effect. Returns the request ids."""
    return [node.send(Assign(request=request(), key=f"well-{number}", one_shot=f"w{number}")) for number in range(4)]


def dead_letter(node: RestartedNode) -> kernel.MessageDeadLettered:
    (entry,) = node.entries(kernel.MessageDeadLettered)
    return codec.decode(entry.type, entry.data, kernel.MessageDeadLettered)


def causes(node: RestartedNode, event: type[Event]) -> list[str]:
    return [entry.cause for entry in node.entries(event)]


def test_a_message_that_ends_the_process_is_given_up_after_three_attempts(node: RestartedNode) -> None:
    before = healthy(node)
    garbage = {"type": "chore.Assign@1", "entity": "chore/x", "request": "odd", "data": b"\xc1"}
    node.server.client().xadd(Keys(fatal.NODE).mailbox(CHORE), garbage)  # type: ignore[arg-type]
    poison = node.send(Assign(request=request(), key="bad", raises=True))
    behind = [*healthy(node), node.send(Assign(request=request(), key="bad"))]
    node.run_until(chore.Assigned, 10)
    letter = dead_letter(node)
    assert (letter.source, letter.at, letter.tries) == ("mailbox", poison, 3)
    # The first end is not counted for any message, because nothing was marked before it.
    assert node.deaths == 4
    assert causes(node, chore.Assigned)[1:] == [*before, *behind]
    assert len(node.entries(kernel.EntryQuarantined)) == 1
    scratch.wait_until(lambda: len(node.entries(chore.Completed)) == 4, "the effects", HANG_SECONDS)
    scratch.wait_until(lambda: not node.store.heads([CHORE])[CHORE].attempts, "no attempts left", HANG_SECONDS)
    node.stop()


def test_a_timer_that_ends_the_process_is_given_up_after_three_attempts(node: RestartedNode) -> None:
    node.send(Assign(request=request(), key="bad", due=fatal.FATAL_DUE))
    node.run_until(kernel.MessageDeadLettered, 1)
    assert node.deaths == 4
    assert dead_letter(node).message == "chore.Due"
    healthy(node)
    scratch.wait_until(lambda: len(node.entries(chore.Completed)) == 4, "the other entities' effects", HANG_SECONDS)
    node.stop()
    for _ in range(2):  # it stays given up after a clean end
        start_and_assign(node)
        node.stop()
    assert len(node.entries(kernel.MessageDeadLettered)) == 1
    node.send(Assign(request=request(), key="bad", due=fatal.FATAL_DUE - 1))
    node.run_until(chore.Fired, 1)
    node.stop()
    assert node.deaths == 4, "another time is another timer"
    start_and_assign(node)
    scratch.wait_until(lambda: not node.store.heads([CHORE])[CHORE].attempts, "no attempts left", HANG_SECONDS)
    node.stop()


def start_and_assign(node: RestartedNode) -> None:
    """Start the process and wait until it has decided something."""
    node.start()
    assigned = len(node.entries(chore.Assigned))
    node.send(Assign(request=request(), key="well-0"))
    scratch.wait_until(lambda: len(node.entries(chore.Assigned)) > assigned, "work", HANG_SECONDS)


def test_an_effect_that_ends_the_process_is_given_up_after_three_attempts(node: RestartedNode) -> None:
    healthy(node)
    poison = node.send(Assign(request=request(), key="fatal", one_shot="w"))
    node.run_until(chore.Failed, 1)
    assert node.deaths == 4
    letter = dead_letter(node)
    assert (letter.source, letter.message, letter.tries) == ("signal", "chore.OneShot", 3)
    assert letter.at.startswith(f"{PREFIX}OneShot:fatal:one-shot:w")
    (failed,) = (codec.decode(one.type, one.data, chore.Failed) for one in node.entries(chore.Failed))
    assert failed.error == "the process ended three times while it ran"
    ((_, kept),) = cast(Any, node.server.client().xrange(Keys(fatal.NODE).dead))
    assert msgspec.msgpack.decode(kept[b"data"]) == {"subject": "one-shot", "intent": "w"}
    (assigned,) = (entry for entry in node.entries(chore.Assigned) if entry.cause == poison)
    assert [entry.cause for entry in node.entries(kernel.MessageDeadLettered)] == [str(assigned.position)]
    scratch.wait_until(lambda: len(node.entries(chore.Completed)) == 4, "the other entities' effects", HANG_SECONDS)
    node.send(Assign(request=request(), key="fatal"))
    scratch.wait_until(lambda: len(node.entries(chore.Assigned)) == 7, "a command to the entity", HANG_SECONDS)
    node.stop()


def test_no_message_is_given_up_because_of_twenty_kills(node: RestartedNode) -> None:
    sent: list[str] = []
    kills = random.Random(7)
    for number in range(20):
        process = node.start()
        assigned = len(node.entries(chore.Assigned))
        sent += [node.send(Assign(request=request(), key=f"k{turn}", one_shot=f"{number}/{turn}")) for turn in range(5)]
        # Kill it at a random moment after it has decided something, however busy the machine is.
        scratch.wait_until(lambda assigned=assigned: len(node.entries(chore.Assigned)) > assigned, "work", HANG_SECONDS)  # type: ignore[misc]
        time.sleep(kills.random() * 0.05)
        process.kill()
        process.join(HANG_SECONDS)
    start_and_assign(node)
    scratch.wait_until(lambda: len(node.entries(chore.Assigned)) == 102, "all commands decided", HANG_SECONDS)
    assert causes(node, chore.Assigned)[1:-1] == sent
    assert node.entries(kernel.MessageDeadLettered) == []
    assert node.entries(chore.Failed) == []
    last = {f"k{turn}": f"19/{turn}" for turn in range(5)}
    scratch.wait_until(
        lambda: (
            {codec.decode(one.type, one.data, chore.Completed).intent for one in node.entries(chore.Completed)}
            >= set(last.values())
        ),
        "the newest effects",
        HANG_SECONDS,
    )
    node.stop()
