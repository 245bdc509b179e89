"""Shards move between live processes when a process joins, leaves, is drained, or cannot host an assigned shard."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chronolet.kernel.hosting.process import Process
from chronolet.kernel.kind import Begun, Effect, EffectContext, Ended, EventDriven, Kind, Report
from chronolet.kernel.observer import Observer
from chronolet.kernel.storage.store import HistoryMissing, Snapshot
from chronolet.kernel.timing import Timing
from chronolet_schemas import kernel
from chronolet_schemas.envelope import START, Entry, Position, Signal
from chronolet_schemas.keys import Shard, shards_of
from tests.kernel import chore, tally
from tests.kernel.chore import Assign, Result
from tests.kernel.rig import Rig, request
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS

TALLIES = shards_of("tally", 4)
LEASE = 3000


@pytest.fixture
def four(rig: Rig) -> Rig:
    """A node whose kind `tally` has four shards."""
    rig.set_shards("tally", 4)
    return rig


def owners(rig: Rig) -> Counter[str]:
    heads = rig.store.heads(TALLIES)
    return Counter(head.token.partition(":")[2] for head in heads.values())


def tallying(rig: Rig, *more: Kind[Any], lease: int = LEASE, **setup: Any) -> Process:
    """Start a process that can host `tally` and the kinds `more`."""
    process = rig.process(tally.kind(4), *more, begin=False, lease_milliseconds=lease, **setup)
    process.start()
    return process


def wait_for_owners(rig: Rig, *counts: tuple[Process, int]) -> None:
    wanted = {process.id: count for process, count in counts if count}
    scratch.wait_until(lambda: dict(owners(rig)) == wanted, f"the owners {wanted}")


def add(rig: Rig, count: int) -> None:
    """Add to each of eight tallies `count` times, and wait until all additions are recorded."""
    before = len(rig.events(tally.Added))
    for number in range(count):
        for key in "abcdefgh":
            rig.send(tally.Add(request=request(), key=key, number=before + number), "tally")
    rig.wait(tally.Added, before + 8 * count)


def test_a_process_that_joins_gets_its_share(four: Rig) -> None:
    first = tallying(four)
    wait_for_owners(four, (first, 4))
    add(four, 1)
    second = tallying(four)
    wait_for_owners(four, (first, 2), (second, 2))
    add(four, 1)
    third = tallying(four)
    scratch.wait_until(lambda: sorted(owners(four).values()) == [1, 1, 2], "an even share for three")
    add(four, 1)
    assert third.id in owners(four)
    assert len(four.events(tally.Added)) == 24
    released = four.events(kernel.ShardReleased)
    assert [one.to for one in released] == [second.id, second.id, third.id]
    assert sum(head.moves for head in four.store.heads(TALLIES).values()) == 3
    assert not four.events(kernel.ShardTakenOver)


def test_the_shares_of_a_process_that_stops_are_handed_over_at_once(four: Rig) -> None:
    first = tallying(four)
    second = tallying(four)
    wait_for_owners(four, (first, 2), (second, 2))
    first.retire()
    wait_for_owners(four, (second, 4))
    assert {one.to for one in four.events(kernel.ShardReleased)} == {second.id}
    assert not four.events(kernel.ShardTakenOver)
    assert first.id not in four.store.survey(()).counters


def test_moves_do_not_wait_for_the_next_regular_look(four: Rig) -> None:
    hour = 3_600_000
    four.timing = Timing(awaited_look_seconds=hour)
    first = tallying(four, lease=hour)
    wait_for_owners(four, (first, 4))
    second = tallying(four, lease=hour)
    wait_for_owners(four, (first, 2), (second, 2))
    four.store.drain(first.id, drains=True)
    wait_for_owners(four, (second, 4))
    four.store.drain(first.id, drains=False)
    wait_for_owners(four, (first, 2), (second, 2))
    second.retire()
    wait_for_owners(four, (first, 4))


class Moved(Observer):
    """Collects the shards that a process has handed over."""

    def __init__(self) -> None:
        self.shards: list[Shard] = []

    def shard_moved(self, shard: Shard) -> None:
        self.shards.append(shard)


def test_a_drained_process_gives_everything_away_until_it_is_undrained(four: Rig) -> None:
    moved = Moved()
    first = tallying(four)
    second = tallying(four, observer=moved)
    wait_for_owners(four, (first, 2), (second, 2))
    four.store.drain(first.id, drains=True)
    wait_for_owners(four, (second, 4))
    assert moved.shards == []
    scratch.wait_until(lambda: first.phase == "standing by", "the drained process on standby")
    add(four, 1)
    four.store.drain(first.id, drains=False)
    wait_for_owners(four, (first, 2), (second, 2))
    scratch.wait_until(lambda: len(moved.shards) == 2, "the report of both moves")
    add(four, 1)


def test_a_process_that_drains_keeps_what_no_other_can_host(four: Rig) -> None:
    first = tallying(four, chore.kind())
    second = tallying(four)
    wait_for_owners(four, (first, 2), (second, 2))
    four.store.drain(first.id, drains=True)
    wait_for_owners(four, (second, 4))
    four.send(Assign(request=request(), key="a"))
    four.wait(chore.Assigned)
    assert four.store.heads([chore_shard()])[chore_shard()].token.endswith(first.id)


def chore_shard() -> Any:
    return shards_of("chore", 1)[0]


def test_a_shard_that_its_assigned_process_does_not_take_is_taken_by_another(four: Rig) -> None:
    """The assigned process renews its lease but acquires no shard. Another process then acquires the shards."""
    first = tallying(four)
    wait_for_owners(four, (first, 4))
    stuck = tallying(four, line=(line := type(four.lines[0])()))
    line.blocked.add("acquire")
    scratch.wait_until(lambda: len(four.events(kernel.ShardReleased)) >= 2, "the release")
    add(four, 1)
    scratch.wait_until(lambda: owners(four)[first.id] >= 2, "the owners")
    assert stuck.id not in owners(four)


def test_a_command_is_decided_once_while_shards_move_back_and_forth(four: Rig) -> None:
    processes = [tallying(four), tallying(four)]
    wait_for_owners(four, (processes[0], 2), (processes[1], 2))
    sent = 0
    for turn in range(6):
        drained = processes[turn % 2]
        four.store.drain(drained.id, drains=True)
        for key in "abcdefgh":
            sent += 1
            four.send(tally.Add(request=f"r{sent}", key=key, number=turn + 1), "tally")
        scratch.wait_until(lambda drained=drained: drained.id not in owners(four), "the drain")
        four.store.drain(drained.id, drains=False)
        four.wait(tally.Added, sent)
    added = Counter((one.key, one.number) for one in four.events(tally.Added))
    assert set(added.values()) == {1}
    assert len(added) == sent
    log = four.log()
    assert [entry.position.n for entry in log] == list(range(1, len(log) + 1))


def test_a_restarted_process_hands_over_what_it_owned_and_another_should_have(four: Rig) -> None:
    """When `named` starts, it owns all shards by its name and hosts none; half of them are assigned to `first`."""
    for shard in TALLIES:
        four.store.acquire(shard, "", "named", 1)
    first = tallying(four)
    named = tallying(four, name="named")
    wait_for_owners(four, (first, 2), (named, 2))
    add(four, 1)


def test_a_shard_whose_history_is_missing_here_goes_to_a_process_that_has_it(four: Rig) -> None:
    """A process without the history is ready again once the other one hosts the shards, and does not get them back."""
    have = tallying(four)
    wait_for_owners(four, (have, 4))
    add(four, 1)
    position = four.store.last()
    for shard, head in four.store.heads(TALLIES).items():
        assert four.store.snapshot(shard, head.token, Snapshot(position=position, format=-1, state=b""))

    def history(after: Position) -> Iterator[Entry]:
        if after == START:
            raise HistoryMissing("the archive files are not here")
        return four.store.scan(after)

    four.timing = Timing(history_retry_seconds=0.05)
    lacks = tallying(four, history=history)
    scratch.wait_until(lambda: len(four.events(kernel.ShardReleased)) >= 2, "the handover")
    wait_for_owners(four, (have, 4))
    scratch.wait_until(lambda: not lacks.quarantined(), "a process that is ready")
    add(four, 1)
    assert owners(four) == {have.id: 4}


# -- effects that move ------------------------------------------------------------------------------------------------


class Moving:
    """Two processes that can host the kind `chore`: the first one hosts it, the second one is on standby."""

    def __init__(self, rig: Rig, kind: Callable[[str], Kind[Any]], **timing: Any) -> None:
        rig.timing = Timing(**timing)
        self.rig = rig
        self.first = rig.process(kind("first"), lease_milliseconds=LEASE)
        self.second = rig.process(kind("second"), begin=False, lease_milliseconds=LEASE)
        self.second.start()
        scratch.wait_until(lambda: self.second.phase == "standing by", "the second process on standby")

    def move(self) -> None:
        """Drain the first process, and wait until the second one owns the shard of `chore`."""
        self.rig.store.drain(self.first.id, drains=True)
        scratch.wait_until(
            lambda: self.rig.store.heads([chore_shard()])[chore_shard()].token.endswith(self.second.id), "the move"
        )


def test_a_one_shot_that_is_running_finishes_and_is_not_run_again(rig: Rig) -> None:
    started, go_on, runs = threading.Event(), threading.Event(), list[str]()

    def kind(name: str) -> Kind[Any]:
        def work(effect: Effect, context: EffectContext) -> Signal:
            runs.append(name)
            started.set()
            assert go_on.wait(HANG_SECONDS)
            context.fence("act")
            return Result(intent=effect.intent)

        return chore.kind(one_shot=work)

    moving = Moving(rig, kind, handover_seconds=3600.0)
    rig.send(Assign(request=request(), key="a", one_shot="w"))
    assert started.wait(HANG_SECONDS)
    rig.store.drain(moving.first.id, drains=True)
    scratch.wait_until(lambda: all(one.moves_to for one in _handles(moving.first)), "a host that is leaving")
    assert not rig.events(kernel.ShardReleased)
    go_on.set()
    moving.move()
    assert len(rig.wait(chore.Completed)) == 1
    assert runs == ["first"]


def test_a_one_shot_that_takes_too_long_is_cut_off_and_repeated_by_the_new_owner(rig: Rig) -> None:
    runs: list[str] = []
    cut = threading.Event()

    def kind(name: str) -> Kind[Any]:
        def work(effect: Effect, context: EffectContext) -> Signal:
            runs.append(name)
            if name == "first":
                context.cancelled.wait()
                cut.set()
                context.fence("act")
            return Result(intent=effect.intent)

        return chore.kind(one_shot=work)

    moving = Moving(rig, kind, handover_seconds=0.2)
    rig.send(Assign(request=request(), key="a", one_shot="w"))
    scratch.wait_until(lambda: runs == ["first"], "the effect")
    moving.move()
    rig.wait(chore.Completed)
    assert cut.is_set()
    assert runs == ["first", "second"]


def test_a_standing_effect_has_ended_before_the_new_owner_starts_it(rig: Rig) -> None:
    seen: list[str] = []

    def kind(name: str) -> Kind[Any]:
        def stand(_effect: Effect, context: EffectContext) -> None:
            seen.append(f"{name} begins")
            context.cancelled.wait()
            seen.append(f"{name} ends")

        return chore.kind(standing=stand)

    moving = Moving(rig, kind)
    rig.send(Assign(request=request(), key="a", standing="s"))
    scratch.wait_until(lambda: seen == ["first begins"], "the effect")
    moving.move()
    scratch.wait_until(lambda: "second begins" in seen, "the effect of the second owner")
    assert seen == ["first begins", "first ends", "second begins"]


def test_an_event_driven_effect_finishes_and_leaves_a_note(rig: Rig) -> None:
    reports: list[Report] = []
    resumed: list[tuple[str, str]] = []

    def kind(name: str) -> Kind[Any]:
        def begin(_effect: Effect, context: EffectContext, _ended: Ended) -> Begun:
            resumed.append((name, context.resume))
            return Begun(lambda: None, reports.append)

        return chore.kind(standing={chore.Standing: EventDriven(begin)})

    moving = Moving(rig, kind, handover_seconds=3600.0)
    rig.send(Assign(request=request(), key="a", standing="s"))
    scratch.wait_until(lambda: resumed == [("first", "")], "the effect")
    rig.store.drain(moving.first.id, drains=True)
    scratch.wait_until(lambda: len(reports) == 1, "the request to finish")
    reports[0]("not over", False)
    assert not rig.events(kernel.ShardReleased)
    reports[0]("at 17", True)
    scratch.wait_until(lambda: len(resumed) == 2, "the effect of the second owner")
    assert resumed == [("first", ""), ("second", "at 17")]


def test_an_event_driven_effect_that_does_not_finish_is_stopped_and_its_last_note_counts(rig: Rig) -> None:
    resumed: list[tuple[str, str]] = []
    stopped = threading.Event()

    def kind(name: str) -> Kind[Any]:
        def begin(_effect: Effect, context: EffectContext, _ended: Ended) -> Begun:
            resumed.append((name, context.resume))
            return Begun(stopped.set, lambda report: report("half done", False))

        return chore.kind(standing={chore.Standing: EventDriven(begin)})

    moving = Moving(rig, kind, handover_seconds=0.2)
    rig.send(Assign(request=request(), key="a", standing="s"))
    scratch.wait_until(lambda: resumed == [("first", "")], "the effect")
    moving.move()
    scratch.wait_until(lambda: len(resumed) == 2, "the effect of the second owner")
    assert stopped.is_set()
    assert resumed == [("first", ""), ("second", "half done")]


def _handles(process: Process) -> list[Any]:
    supervisor = process._supervisor._actor_weakref() if process._supervisor is not None else None
    return list(supervisor._hosted.handles().values()) if supervisor is not None else []
