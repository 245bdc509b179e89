"""What hosts report to the kernel's observer: acquired shards, batches, backlogs, effects, taken shards."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from chronolet.kernel.kind import Effect, EffectContext
from chronolet.kernel.observer import Backlog, Observer, Outcome
from chronolet_schemas.envelope import Signal
from chronolet_schemas.keys import Shard
from tests.kernel import chore, mirror, tally
from tests.kernel.chore import Assign
from tests.kernel.rig import Line, Rig, request
from tests.kernel.tally import Add
from tests.support import scratch

CHORE, MIRROR = Shard("chore"), Shard("mirror")


class Reports(Observer):
    def __init__(self) -> None:
        self.acquired: dict[Shard, list[str]] = {}
        self.backlogs: dict[Shard, Callable[[], Backlog]] = {}
        self.batches: list[int] = []
        self.taken: list[Shard] = []
        self.started: list[tuple[str, float, bool]] = []
        self.done: list[tuple[str, float, bool]] = []

    def shard_acquired(self, shard: Shard, states: Mapping[str, Any], backlog: Callable[[], Backlog]) -> None:
        self.acquired[shard] = sorted(states)
        self.backlogs[shard] = backlog

    def turn_taken(self, shard: Shard, messages: int) -> None:
        self.batches.append(messages)

    def shard_taken(self, shard: Shard) -> None:
        self.taken.append(shard)

    def effect_started(self, kind: str, effect: str, *, began: float = 0.0, standing: bool = False) -> None:
        self.started.append((effect, began, standing))

    def effect_done(
        self, kind: str, effect: str, seconds: float, outcome: Outcome, *, began: float = 0.0, standing: bool = False
    ) -> None:
        self.done.append((effect, began, standing))


def test_a_host_reports_its_shard_with_the_recovered_entities(rig: Rig) -> None:
    first = rig.process(chore.kind())
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    first.retire()
    reports = Reports()
    rig.process(chore.kind(), observer=reports)
    scratch.wait_until(lambda: CHORE in reports.acquired, "the report")
    assert reports.acquired == {CHORE: ["a"]}
    assert reports.backlogs[CHORE]() == Backlog()


def test_batches_and_backlogs_are_counted(rig: Rig) -> None:
    """Messages that arrive while a step cannot reach the store are the backlog, and afterwards the next batch."""
    line, reports = Line(), Reports()
    rig.process(chore.kind(), line=line, observer=reports)
    scratch.wait_until(lambda: CHORE in reports.backlogs, "the host")
    line.blocked = {"step"}
    rig.send(Assign(request=request(), key="first"))
    scratch.wait_until(lambda: reports.batches == [1], "the first turn")
    for number in range(3):
        rig.send(Assign(request=request(), key=f"k{number}"))
    scratch.wait_until(lambda: reports.backlogs[CHORE]().commands == 3, "the backlog")
    backlog = reports.backlogs[CHORE]()
    assert backlog.oldest_command_at > 0
    assert backlog.seconds_waiting > 0
    assert (backlog.log_entries, backlog.oldest_entry_at) == (0, 0)
    line.blocked = set()
    rig.wait(chore.Assigned, 4)
    rig.settle()
    assert reports.batches[1] >= 3
    assert reports.backlogs[CHORE]() == Backlog()


def test_log_entries_of_a_subscription_are_counted_as_such(rig: Rig) -> None:
    line, reports = Line(), Reports()
    rig.process(tally.kind(1))
    rig.process(mirror.kind(1), line=line, observer=reports)
    rig.send(Add(request=request(), key="a", number=1), kind="tally")
    rig.wait(mirror.Seen)
    rig.settle()
    line.blocked, reports.batches = {"step"}, []
    rig.send(Add(request=request(), key="a", number=2), kind="tally")
    scratch.wait_until(lambda: bool(reports.batches), "the turn that cannot be committed")
    rig.send(Add(request=request(), key="a", number=3), kind="tally")
    scratch.wait_until(lambda: reports.backlogs[MIRROR]().log_entries == 1, "the backlog")
    assert reports.backlogs[MIRROR]().oldest_entry_at == rig.log()[-1].position.milliseconds
    line.blocked = set()
    rig.wait(mirror.Seen, 3)


def test_a_shard_that_another_process_took_is_reported(rig: Rig) -> None:
    line, reports = Line(), Reports()
    first = rig.process(chore.kind(), line=line, observer=reports)
    line.down = True
    scratch.wait_until(lambda: first.id not in rig.store.alive(), "the end of the lease")
    rig.process(chore.kind())
    line.down = False
    scratch.wait_until(lambda: reports.taken == [CHORE], "the report")


def test_effects_report_when_they_began_and_whether_they_stand(rig: Rig) -> None:
    reports, go = Reports(), threading.Event()

    def work(effect: Effect, context: EffectContext) -> Signal:
        go.wait(scratch.HANG_SECONDS)
        return chore.Result(intent=effect.intent)

    rig.process(chore.kind(one_shot=work), observer=reports)
    rig.send(Assign(request=request(), key="a", one_shot="1"))
    scratch.wait_until(lambda: bool(reports.started), "the effect")
    assert not reports.done
    go.set()
    rig.wait(chore.Completed)
    assert reports.done == reports.started
    ((_, began, standing),) = reports.done
    assert began > 0
    assert not standing
