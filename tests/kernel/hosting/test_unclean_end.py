"""After an end without a handover, attempts are counted in few round trips, and the message that ended the process is
found. The tests count the store's calls; docs/adr/0021 contains durations.
"""

import threading
from collections.abc import Mapping

from chronolet.kernel.decider import Effect
from chronolet.kernel.kind import EffectContext
from chronolet.kernel.timing import Timing
from chronolet_schemas import kernel
from chronolet_schemas.envelope import START, Signal
from chronolet_schemas.keys import Shard
from tests.kernel import chore
from tests.kernel.chore import Assign, Result
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch

CHORE = Shard("chore")
COMMANDS = 60
EFFECTS = 35


def end_with_running_effects(rig: Rig, count: int) -> None:
    """Run a process that has `count` running effects when it ends without a handover, as after kill -9."""
    begun = threading.Semaphore(0)

    def run(effect: Effect, context: EffectContext) -> Signal:
        begun.release()
        context.cancelled.wait(scratch.HANG_SECONDS)
        return Result(intent=effect.intent)

    line = Line()
    process = rig.process(chore.kind(run, timeout=scratch.HANG_SECONDS), line=line, workers=count)
    for number in range(count):
        rig.send(Assign(request=request(), key=f"e{number}", one_shot=f"w{number}"))
    for _ in range(count):
        assert begun.acquire(timeout=scratch.HANG_SECONDS)
    line.blocked = {"retire"}
    process.retire()


def attempts(rig: Rig) -> Mapping[str, int]:
    return rig.server.shard(CHORE).head.attempts


def test_counting_the_results_of_effects_needs_no_round_trips_of_its_own(rig: Rig) -> None:
    end_with_running_effects(rig, EFFECTS)
    for number in range(COMMANDS):
        rig.send(Assign(request=request(), key=f"c{number}"))
    together = threading.Barrier(EFFECTS)

    def run(effect: Effect, _context: EffectContext) -> Signal:
        together.wait(scratch.HANG_SECONDS)  # all of them run at the same time
        return Result(intent=effect.intent)

    line = Line()
    rig.process(chore.kind(run, timeout=scratch.HANG_SECONDS), line=line, workers=EFFECTS)
    rig.wait(chore.Completed, EFFECTS)
    assert len(rig.events(chore.Assigned)) == EFFECTS + COMMANDS
    scratch.wait_until(lambda: not attempts(rig), "no counts left")
    # One call per command, and one for all effects. The effects' marks cover their results.
    assert line.calls.count("count_attempts") == COMMANDS + 1
    assert rig.events(kernel.ShardTakenOver)


def test_each_message_gets_a_step_of_its_own_and_one_that_ended_three_processes_is_given_up(rig: Rig) -> None:
    end_with_running_effects(rig, 0)
    sent = [rig.send(Assign(request=request(), key=f"c{number}")) for number in range(10)]
    mails = [f"mailbox:{mail.id}" for mail in rig.store.read_mail(CHORE, START, 20)]
    head = rig.store.heads([CHORE])[CHORE]
    fatal, suspected = mails[5], (mails[2], mails[4])
    # The counts left by the dead process: three attempts at the fatal message, and one at each of two before it.
    assert rig.store.count_attempts(CHORE, head.token, {fatal: 3, **dict.fromkeys(suspected, 1)}) is None
    line = Line()
    rig.process(chore.kind(), line=line)
    rig.wait(chore.Assigned, 9)
    (given_up,) = rig.events(kernel.MessageDeadLettered)
    assert (given_up.at, given_up.tries) == (sent[5], 3)
    decided = [entry.cause for entry in rig.log() if entry.type == "chore.Assigned@1"]
    assert decided == [one for one in sent if one != sent[5]]
    scratch.wait_until(lambda: not attempts(rig), "no counts left")
    assert line.calls.count("count_attempts") == 9
    assert line.calls.count("step") == 11, "one per message, and one for the takeover"
    assert not rig.events(kernel.HostRestarted)


def test_a_message_that_fails_after_an_unclean_end_is_given_up(rig: Rig) -> None:
    rig.timing = Timing(host_first_back_off_seconds=0.01)
    end_with_running_effects(rig, 0)
    for number in range(5):
        rig.send(Assign(request=request(), key=f"c{number}"))
    poison = rig.send(Assign(request=request(), key="bad", raises=True))
    rig.process(chore.kind())
    (given_up,) = rig.wait(kernel.MessageDeadLettered)
    assert (given_up.at, given_up.tries) == (poison, 3)
    assert len(rig.wait(chore.Assigned, 5)) == 5
    assert [each.restarts for each in rig.events(kernel.HostRestarted)] == [1, 2, 3]


def test_after_a_clean_end_no_attempts_are_counted(rig: Rig) -> None:
    rig.process(chore.kind())
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned)
    rig.retire()
    for number in range(10):
        rig.send(Assign(request=request(), key=f"c{number}", one_shot="w"))
    line = Line()
    rig.process(chore.kind(), line=line)
    rig.wait(chore.Completed, 10)
    assert "count_attempts" not in line.calls
