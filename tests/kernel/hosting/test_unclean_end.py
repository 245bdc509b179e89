"""After an end without a handover, suspects are counted in few round trips, and the message that ended the process is
still found. The tests count the store's calls; docs/adr/0021 has durations.
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
from tests.kernel.chore import Answer, Tell
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch

CHORE = Shard("chore")
COMMANDS = 60
EFFECTS = 35


def begun_effects(rig: Rig, count: int) -> None:
    """Run a process with `count` running effects that ends without a handover, as by kill -9."""
    begun = threading.Semaphore(0)

    def run(effect: Effect, context: EffectContext) -> Signal:
        begun.release()
        context.cancelled.wait(scratch.HANG_SECONDS)
        return Answer(intent=effect.intent)

    line = Line()
    process = rig.process(chore.kind(run, timeout=scratch.HANG_SECONDS), line=line, workers=count)
    for number in range(count):
        rig.send(Tell(request=request(), key=f"e{number}", wish=f"w{number}"))
    for _ in range(count):
        assert begun.acquire(timeout=scratch.HANG_SECONDS)
    line.silent = {"retire"}
    process.retire()


def tries(rig: Rig) -> Mapping[str, int]:
    return rig.server.shard(CHORE).head.attempts


def test_the_results_of_effects_cost_no_round_trips_of_their_own(rig: Rig) -> None:
    begun_effects(rig, EFFECTS)
    for number in range(COMMANDS):
        rig.send(Tell(request=request(), key=f"c{number}"))
    together = threading.Barrier(EFFECTS)

    def run(effect: Effect, _context: EffectContext) -> Signal:
        together.wait(scratch.HANG_SECONDS)  # all of them run next to each other
        return Answer(intent=effect.intent)

    line = Line()
    rig.process(chore.kind(run, timeout=scratch.HANG_SECONDS), line=line, workers=EFFECTS)
    rig.wait(chore.Answered, EFFECTS)
    assert len(rig.events(chore.Told)) == EFFECTS + COMMANDS
    scratch.wait_until(lambda: not tries(rig), "no counts left")
    # One count per command, one for all effects. Their marks cover their results.
    assert line.calls.count("count_attempts") == COMMANDS + 1
    assert rig.events(kernel.ShardTakenOver)


def test_each_message_is_decided_by_itself_and_one_that_ended_three_processes_is_not(rig: Rig) -> None:
    begun_effects(rig, 0)
    sent = [rig.send(Tell(request=request(), key=f"c{number}")) for number in range(10)]
    mails = [f"mailbox:{mail.id}" for mail in rig.store.read_mail(CHORE, START, 20)]
    head = rig.store.heads([CHORE])[CHORE]
    fatal, suspected = mails[5], (mails[2], mails[4])
    # As the dead process left them: three attempts of the fifth, and one each of two others next to it.
    assert rig.store.count_attempts(CHORE, head.token, {fatal: 3, **dict.fromkeys(suspected, 1)}) is None
    line = Line()
    rig.process(chore.kind(), line=line)
    rig.wait(chore.Told, 9)
    (given_up,) = rig.events(kernel.MessageDeadLettered)
    assert (given_up.at, given_up.tries) == (sent[5], 3)
    told = [entry.cause for entry in rig.log() if entry.type == "chore.Told@1"]
    assert told == [one for one in sent if one != sent[5]]
    scratch.wait_until(lambda: not tries(rig), "no counts left")
    assert line.calls.count("count_attempts") == 9
    assert line.calls.count("step") == 11, "and one that records the takeover"
    assert not rig.events(kernel.HostRestarted)


def test_a_message_that_fails_after_an_unclean_end_is_given_up(rig: Rig) -> None:
    rig.timing = Timing(host_first_back_off_seconds=0.01)
    begun_effects(rig, 0)
    for number in range(5):
        rig.send(Tell(request=request(), key=f"c{number}"))
    poison = rig.send(Tell(request=request(), key="bad", raises=True))
    rig.process(chore.kind())
    (given_up,) = rig.wait(kernel.MessageDeadLettered)
    assert (given_up.at, given_up.tries) == (poison, 3)
    assert len(rig.wait(chore.Told, 5)) == 5
    assert [each.restarts for each in rig.events(kernel.HostRestarted)] == [1, 2, 3]


def test_after_a_clean_end_nothing_is_counted(rig: Rig) -> None:
    rig.process(chore.kind())
    rig.send(Tell(request=request(), key="a"))
    rig.wait(chore.Told)
    rig.retire()
    for number in range(10):
        rig.send(Tell(request=request(), key=f"c{number}", wish="w"))
    line = Line()
    rig.process(chore.kind(), line=line)
    rig.wait(chore.Answered, 10)
    assert "count_attempts" not in line.calls
