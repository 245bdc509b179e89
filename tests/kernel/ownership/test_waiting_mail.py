"""Commands sent while no process was running are decided before any effect of the recovered states starts."""

import dataclasses
import threading
from typing import Any

from chronolet.kernel.decider import Decider, Effect
from chronolet.kernel.kind import EffectContext, Kind
from chronolet.kernel.timing import Timing
from chronolet_schemas.envelope import Signal
from tests.kernel import chore, tally
from tests.kernel.chore import Assign, Result
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS


class Work:
    """A worker that records the intents that it began, and completes only the intent `done`."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def __call__(self, effect: Effect, context: EffectContext) -> Signal:
        self.begun.append(effect.intent)
        if effect.intent != "done":
            context.cancelled.wait(HANG_SECONDS)
        return Result(intent=effect.intent)


def chore_of(work: Work) -> Kind[chore.Chore]:
    """Return the chore kind, whose entities drop their intents when the tally has added a number to the same key."""

    def decide(state: chore.Chore, message: object, now: int) -> Any:
        return (chore.Assigned(),) if isinstance(message, tally.Added) else chore.decide(state, message, now)

    decider: Decider[chore.Chore] = dataclasses.replace(chore.DECIDER, decide=decide)
    return chore.kind(work, decider=decider, subscribes={tally.Added: lambda added: (added.key,)})


def begin_effects(rig: Rig, count: int) -> None:
    """Run a process that begins `count` effects, one per entity 0, 1, ..., and ends before any of them is done."""
    before = Work()
    rig.process(chore_of(before), tally.kind(1))
    for key in range(count):
        rig.send(Assign(request=request(), key=str(key), one_shot=f"w{key}"))
    scratch.wait_until(lambda: len(before.begun) == count, "all effects")
    rig.retire()
    assert not rig.events(chore.Completed)


def test_a_command_to_an_entity_is_decided_before_its_recovered_effect_starts(rig: Rig) -> None:
    begin_effects(rig, 1)
    rig.send(Assign(request=request(), key="0"))
    after = Work()
    rig.process(chore_of(after), tally.kind(1))
    rig.send(Assign(request=request(), key="1", one_shot="done"))
    rig.wait(chore.Completed)
    assert after.begun == ["done"]


def test_a_command_to_another_kind_is_decided_before_a_recovered_effect_starts(rig: Rig) -> None:
    """For example, the deletion of a pod, which is sent to `manifests`, is decided before its container starts."""
    rig.timing = Timing(mail_seconds=3600.0)
    begin_effects(rig, 3)
    for key in ("0", "2"):
        rig.send(tally.Add(request=request(), key=key, number=1), "tally")
    after = Work()
    rig.process(chore_of(after), tally.kind(1))
    rig.send(Assign(request=request(), key="last", one_shot="done"))
    rig.wait(chore.Completed)
    scratch.wait_until(lambda: "w1" in after.begun, "the effect that no command withdrew")
    assert sorted(after.begun) == ["done", "w1"]


def test_a_command_that_cannot_be_decided_blocks_no_other_shard(rig: Rig) -> None:
    rig.timing = Timing(mail_seconds=3600.0)
    begin_effects(rig, 1)
    rig.send(tally.Add(request=request(), key="0", number=1, poison=True), "tally")
    after = Work()
    rig.process(chore_of(after), tally.kind(1))
    scratch.wait_until(lambda: after.begun == ["w0"], "the effect", seconds=60)


def test_a_command_to_a_kind_of_another_process_is_decided_before_a_recovered_effect_starts(rig: Rig) -> None:
    rig.timing = Timing(mail_seconds=3600.0)
    begin_effects(rig, 1)
    rig.send(tally.Add(request=request(), key="0", number=1), "tally")
    after, line = Work(), Line()
    rig.process(chore_of(after), line=line, begin=False).start()
    scratch.wait_until(
        lambda: line.calls.count("heads") > 3 or bool(after.begun), "a second look at the cursor of the other shard"
    )
    rig.process(tally.kind(1))
    rig.wait(chore.Assigned, 2)
    rig.send(Assign(request=request(), key="last", one_shot="done"))
    rig.wait(chore.Completed)
    assert after.begun == ["done"]


def test_a_command_that_no_process_reads_delays_other_shards_only_briefly(rig: Rig) -> None:
    rig.timing = Timing(mail_seconds=0.2)
    begin_effects(rig, 1)
    rig.send(tally.Add(request=request(), key="0", number=1), "tally")
    after = Work()
    rig.process(chore_of(after))
    scratch.wait_until(lambda: after.begun == ["w0"], "the effect")


def test_no_other_shard_is_hosted_before_a_waiting_command_is_decided(rig: Rig) -> None:
    rig.timing = Timing(mail_seconds=3600.0)
    begin_effects(rig, 1)
    rig.send(tally.Add(request=request(), key="0", number=1), "tally")
    deciding, release = threading.Event(), threading.Event()

    def decide(state: tally.Tally, message: object, now: int) -> Any:
        deciding.set()
        release.wait(HANG_SECONDS)
        return tally.decide(state, message, now)

    slow = dataclasses.replace(tally.kind(1), decider=dataclasses.replace(tally.DECIDER, decide=decide))
    after = Work()
    rig.process(chore_of(after), slow, begin=False).start()
    assert deciding.wait(HANG_SECONDS)
    assert after.begun == [], "the chore is not hosted before the tally has decided"
    release.set()
    rig.wait(chore.Assigned, 2)
    assert after.begun == []
