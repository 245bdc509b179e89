"""Workers that are killed at each point of a change of the number of shards, under load: no input is lost, repeated or
out of order, and each requested change is made once.
"""

import itertools
import random
from pathlib import Path

import pytest

from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.keys import shards_of
from tests.kernel import tally
from tests.kernel.kill import guarantees
from tests.kernel.kill.node import Node, Times, attacked, report
from tests.support import scratch
from tests.support.redis.server import PrivateRedis

JOBS = [{"locks": True}, {"locks": True}, {"locks": False}]
POINTS = ("reshard-released", "reshard-acquired", "reshard-before", "reshard-after")
COUNTS = {"tally": (8, 2, 1, 3, 4), "mirror": (8, 1, 3, 2)}
RESHARDED = registry.type_of(kernel.KindResharded)


def change(node: Node, kind: str, shards: int) -> None:
    """Request `shards` shards for the kind. Wait until the change is made and all new shards have owners."""
    assert node.store.request_shards(kind, shards)
    scratch.wait_until(lambda: node.store.layout().counts[kind] == shards, f"{shards} shards of {kind}", seconds=60)
    node.done[f"changes of {kind}"] += 1
    scratch.wait_until(lambda: owned(node, kind), f"owners of {kind}", seconds=60)


def owned(node: Node, kind: str) -> bool:
    heads = node.store.heads(shards_of(kind, node.store.layout().counts[kind]))
    return all(head.token for head in heads.values())


def killed_at(node: Node, point: str, kind: str, shards: int) -> None:
    """Make a change during which the first worker to reach the point kills itself; then replace that worker."""
    planted = node.folder / "crash" / point
    planted.touch()
    live = set(node.farm.live)
    change(node, kind, shards)
    scratch.wait_until(lambda: not planted.exists(), f"a kill at {point}")
    scratch.wait_until(lambda: len(live & set(_running(live))) == len(live) - 1, "the end of the killed worker")
    for pid in live - set(_running(live)):
        node.farm.live.remove(pid)
    node.done[f"kills at {point}"] += 1
    node.start_worker()


def _running(pids: set[int]) -> list[int]:
    return [pid for pid in pids if scratch.start_time(pid) is not None]


def verdict(node: Node, *, changes: int) -> None:
    """Check that the log has each input once and in order and each change once, and that each of its notes was written
    to the file `notes`.
    """
    entries = node.settle()
    counts = guarantees.check_log(entries, node.sender.sent)
    made = [codec.decode(e.type, e.data, kernel.KindResharded) for e in entries if e.type == RESHARDED]
    assert len(made) == changes
    for kind, first in (("tally", 4), ("mirror", 2)):
        steps = [first, *(one.after for one in made if one.kind == kind)]
        assert [one.before for one in made if one.kind == kind] == steps[:-1]
    notes = [entry for entry in entries if entry.type == registry.type_of(tally.NoteTaken)]
    taken = {(e.entity.partition("/")[2], codec.decode(e.type, e.data, tally.NoteTaken).count) for e in notes}
    lines = [line.split() for line in (node.folder / "notes").read_text().splitlines()]
    assert len(taken) > 0
    assert not taken - {(key, int(count)) for _, _, key, count, _ in lines}, "each note of the log was written"
    lost = [name for name in counts if name in ("kernel.MessageDeadLettered", "kernel.EntryQuarantined")]
    assert not lost, lost
    assert not [path.read_text() for path in Path(node.folder / "errors").iterdir()]
    report("attacks", node.done)
    report("log", counts)


@pytest.mark.timeout(900)
def test_kills_at_each_point_of_a_change_neither_lose_nor_repeat_an_input(
    redis_server: PrivateRedis, times: Times
) -> None:
    counts = {kind: itertools.cycle(shards) for kind, shards in COUNTS.items()}
    rounds = times(2, 20)
    with attacked(redis_server, JOBS) as node:
        for _ in rounds:
            for point in POINTS:
                for kind in COUNTS:
                    node.load(20, 100)
                    killed_at(node, point, kind, next(counts[kind]))
        verdict(node, changes=2 * len(POINTS) * len(rounds))


@pytest.mark.timeout(900)
def test_changes_while_owners_are_killed_neither_lose_nor_repeat_an_input(
    redis_server: PrivateRedis, times: Times
) -> None:
    counts = {kind: itertools.cycle(shards) for kind, shards in COUNTS.items()}
    rounds = times(6, 60)
    with attacked(redis_server, JOBS) as node:
        for _ in rounds:
            node.load(10, 60)
            kind = random.choice(sorted(COUNTS))
            shards = next(counts[kind])
            assert node.store.request_shards(kind, shards)
            node.kill_worker()
            change(node, kind, shards)
        verdict(node, changes=len(rounds))


@pytest.mark.timeout(900)
def test_a_server_that_is_killed_around_a_change_loses_no_input(forgetful_server: PrivateRedis, times: Times) -> None:
    """The server may lose the change itself, or only what followed it. The processes then have a layout that the server
    no longer has, or have acquired shards that it no longer knows.
    """
    counts = itertools.cycle(COUNTS["tally"])
    rounds = times(4, 40)
    with attacked(forgetful_server, JOBS) as node:
        for number in rounds:
            node.load(20, 60)
            shards = next(counts)
            if number % 2:
                change(node, "tally", shards)
                node.lose_tail()
            else:
                node.store.request_shards("tally", shards)
                node.lose_tail()
        node.load(20, 60)
        entries = node.settle()
        guarantees.check_log(entries, node.sender.sent)
        assert any(entry.type == RESHARDED for entry in entries)
        assert not [path.read_text() for path in (node.folder / "errors").iterdir()]
        report("attacks", node.done)
