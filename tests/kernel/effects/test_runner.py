"""Effects: at most one per subject, with a time-out, retried with back-off, and never for an intent that has ended."""

import threading
from collections.abc import Callable

import pytest

from chronolet.kernel.decider import Effect
from chronolet.kernel.effects.slot import LostOwnership
from chronolet.kernel.host import host
from chronolet.kernel.kind import EffectContext, Ended, EventDriven, Job
from chronolet.kernel.timing import Timing
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Record, Signal
from tests.kernel import chore
from tests.kernel.chore import Assign, Result
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS

LATE = 3599.0
STARTED = Record("kernel.LogStarted@1", "node/n", "", "", "", b"\x80")


@pytest.fixture(autouse=True)
def short_pauses(rig: Rig) -> None:
    rig.timing = Timing(effect_first_pause_seconds=0.02, fenced_pause_seconds=0.02)


def test_an_effect_that_exceeds_its_time_out_fails(rig: Rig) -> None:
    release = threading.Event()

    def run(effect: Effect, _context: EffectContext) -> Signal:
        release.wait()
        return Result(intent=effect.intent, text="late")

    rig.process(chore.kind(run, timeout=0.05))
    rig.send(Assign(request=request(), key="a", one_shot="w"))
    (failed,) = rig.wait(chore.Failed)
    assert failed == chore.Failed(intent="w", error="it did not end in time", timed_out=True)
    release.set()
    rig.send(Assign(request=request(), key="a"))
    rig.wait(chore.Assigned, 2)
    assert not rig.events(chore.Completed), "a result after the time-out is ignored"


def test_the_exception_of_a_worker_reaches_the_decider(rig: Rig) -> None:
    def run(_effect: Effect, _context: EffectContext) -> Signal:
        raise RuntimeError("no such engine")

    rig.process(chore.kind(run))
    sent = rig.send(Assign(request=request(), key="a", one_shot="w"))
    (failed,) = rig.wait(chore.Failed)
    assert failed.error == "RuntimeError: no such engine"
    assigned = next(entry for entry in rig.log() if entry.cause == sent)
    assert next(e for e in rig.log() if e.type == "chore.Failed@1").cause == str(assigned.position)


def test_a_subject_has_one_effect_and_a_result_for_an_old_intent_is_ignored(rig: Rig) -> None:
    running: list[str] = []
    release = threading.Event()

    def run(effect: Effect, context: EffectContext) -> Signal:
        running.append(effect.intent)
        assert len(running) == 1
        if effect.intent == "old":
            context.cancelled.wait()
            release.wait()
        running.remove(effect.intent)
        return Result(intent=effect.intent)

    rig.process(chore.kind(run))
    rig.send(Assign(request=request(), key="a", one_shot="old"))
    scratch.wait_until(lambda: running == ["old"], "the first effect")
    rig.send(Assign(request=request(), key="a", one_shot="new"))
    rig.wait(chore.Assigned, 2)
    release.set()
    (answered,) = rig.wait(chore.Completed)
    assert answered.intent == "new"
    assert not rig.events(chore.Failed)


def test_a_standing_effect_that_fails_is_restarted_with_back_off_and_an_event(rig: Rig) -> None:
    starts: list[str] = []

    def run(effect: Effect, context: EffectContext) -> None:
        starts.append(effect.intent)
        if len(starts) < 4:
            raise RuntimeError("stream broken")
        context.send(chore.Report(text="running"))
        context.cancelled.wait()

    rig.process(chore.kind(standing=run))
    rig.send(Assign(request=request(), key="a", standing="s"))
    rig.wait(chore.Reported)
    failing = rig.events(kernel.EffectsFailing)
    assert [each.retry_in_milliseconds for each in failing] == [20, 40, 80]
    assert {(each.effect, each.about, each.error) for each in failing} == {
        ("Standing", "chore/a standing", "RuntimeError: stream broken")
    }


def test_a_new_intent_does_not_wait_for_the_pause_of_the_previous_one(rig: Rig) -> None:
    rig.timing = Timing(effect_first_pause_seconds=3600.0, effect_longest_pause_seconds=3600.0)

    def run(effect: Effect, context: EffectContext) -> None:
        if effect.intent == "bad":
            raise RuntimeError("bad")
        context.send(chore.Report(text=effect.intent))
        context.cancelled.wait()

    rig.process(chore.kind(standing=run))
    rig.send(Assign(request=request(), key="a", standing="bad"))
    rig.wait(kernel.EffectsFailing)
    rig.send(Assign(request=request(), key="a", standing="good"))
    assert rig.wait(chore.Reported)[0].text == "good"


def test_a_standing_effect_is_cancelled_when_it_is_no_longer_wanted(rig: Rig) -> None:
    begun, ended = threading.Event(), threading.Event()

    def run(_effect: Effect, context: EffectContext) -> None:
        begun.set()
        context.cancelled.wait()
        with pytest.raises(LostOwnership):
            context.fence("anything")
        ended.set()

    rig.process(chore.kind(standing=run))
    rig.send(Assign(request=request(), key="a", standing="s"))
    assert begun.wait(HANG_SECONDS)
    rig.send(Assign(request=request(), key="a"))
    assert ended.wait(HANG_SECONDS)


def test_an_event_driven_effect_has_no_thread_and_is_stopped_once(rig: Rig) -> None:
    ended: list[str] = []
    threads: list[threading.Thread] = []

    def begin(effect: Effect, context: EffectContext, _ended: Ended) -> Callable[[], None]:
        threads.extend(threading.enumerate())
        context.fence("start")
        context.send(chore.Report(text=f"begun {effect.intent}"))
        return lambda: ended.append(f"ended {effect.intent}, cancelled: {context.cancelled.is_set()}")

    rig.process(chore.kind(standing={chore.Standing: EventDriven(begin)}))
    before = threading.enumerate()
    for number, intent in enumerate(("one", "one", "two", "", "three"), 1):
        rig.send(Assign(request=request(), key="a", standing=intent))
        rig.wait(chore.Assigned, number)
        if intent:
            scratch.wait_until(
                lambda intent=intent: rig.events(chore.Reported)[-1:] == [chore.Reported(text=f"begun {intent}")],
                intent,
            )
    assert [one.text for one in rig.events(chore.Reported)] == ["begun one", "begun two", "begun three"]
    assert ended == ["ended one, cancelled: True", "ended two, cancelled: True"]
    assert set(threads) <= set(before)


def test_an_event_driven_effect_that_fails_is_restarted_with_back_off_and_an_event(rig: Rig) -> None:
    begun: list[str] = []

    def begin(effect: Effect, context: EffectContext, ended: Ended) -> Callable[[], None]:
        begun.append(effect.intent)
        if len(begun) == 1:
            raise RuntimeError("immediately")
        if len(begun) == 2:
            threading.Thread(target=ended, args=(RuntimeError("later"),)).start()
        else:
            context.send(chore.Report(text="running"))
        return lambda: None

    rig.process(chore.kind(standing={chore.Standing: EventDriven(begin)}))
    rig.send(Assign(request=request(), key="a", standing="s"))
    rig.wait(chore.Reported)
    failing = rig.events(kernel.EffectsFailing)
    assert [each.error for each in failing] == ["RuntimeError: immediately", "RuntimeError: later"]


def test_progress_of_one_shots_is_throttled_and_that_of_standing_effects_is_not(rig: Rig) -> None:
    rig.timing = Timing(progress_seconds=3600.0)

    def run(effect: Effect, context: EffectContext) -> Signal:
        for number in range(10):
            context.send(chore.Report(text=f"{effect.intent} {number}"))
        return Result(intent=effect.intent)

    def stand(_effect: Effect, context: EffectContext) -> None:
        for number in range(10):
            context.send(chore.Report(text=f"s {number}"))
        context.cancelled.wait()

    rig.process(chore.kind(run, stand))
    rig.send(Assign(request=request(), key="a", one_shot="w"))
    rig.wait(chore.Completed)
    assert [one.text for one in rig.events(chore.Reported)] == ["w 0"]
    rig.send(Assign(request=request(), key="a", standing="s"))
    rig.wait(chore.Reported, 11)


def test_an_effect_acts_only_while_the_lease_is_valid_and_is_retried_after_a_lapse(rig: Rig) -> None:
    line, fenced = Line(), threading.Event()

    def run(effect: Effect, context: EffectContext) -> Signal:
        if not fenced.is_set():
            line.down = True
            scratch.wait_until(lambda: not process.lease.valid(), "the end of the lease")
        try:
            context.fence("look")
        except LostOwnership:
            fenced.set()
            raise
        assert not line.down, "allowed to act without a lease"
        return Result(intent=effect.intent)

    process = rig.process(chore.kind(run), line=line)
    rig.send(Assign(request=request(), key="a", one_shot="w"))
    assert fenced.wait(HANG_SECONDS)
    line.down = False
    rig.wait(chore.Completed)


class Points:
    """A `Faults` implementation that records the crash points."""

    def __init__(self) -> None:
        self.passed: list[str] = []

    def point(self, name: str) -> None:
        self.passed.append(name)


def test_every_step_and_every_call_of_an_effect_has_a_crash_point_before_and_after(rig: Rig) -> None:
    points = Points()
    rig.process(chore.kind(), faults=points)
    rig.send(Assign(request=request(), key="a", one_shot="w"))
    rig.wait(chore.Completed)
    scratch.wait_until(lambda: "step/after chore chore.Completed" in points.passed, "the last point")
    assert points.passed[-6:] == [
        "step/before chore chore.Assigned",
        "step/after chore chore.Assigned",
        "effect/before work chore/a one-shot",
        "effect/after work chore/a one-shot",
        "step/before chore chore.Completed",
        "step/after chore chore.Completed",
    ]


def test_waiting_messages_are_decided_in_one_step(rig: Rig) -> None:
    points = Points()
    process = rig.process(chore.kind(), faults=points, begin=False)
    rig.store.begin("r", {"chore": 1}, STARTED)
    for _ in range(host.BATCH + 20):
        rig.send(Assign(request=request(), key="a"))
    process.start()
    rig.wait(chore.Assigned, host.BATCH + 20)
    before = [point for point in points.passed if point.startswith("step/before")]
    assert len(before) <= 4
    assert before[0].count("chore.Assigned") == host.BATCH


def no_thread_for(monkeypatch: pytest.MonkeyPatch, key: str, times: int) -> list[str]:
    """Make the first `times` thread starts for effects of the entity `key` fail. Returns a list to which the threads'
    names are added when they fail.
    """
    real, failed = threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith(f"chore/{key} ") and len(failed) < times:
            failed.append(thread.name)
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    return failed


def test_an_effect_that_gets_no_thread_fails_and_others_run(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    without_thread = no_thread_for(monkeypatch, "a", 1)
    rig.process(chore.kind())
    rig.send(Assign(request=request(), key="a", one_shot="w"))
    rig.send(Assign(request=request(), key="b", one_shot="w"))
    (failed,) = rig.wait(chore.Failed)
    assert failed == chore.Failed(intent="w", error="RuntimeError: can't start new thread")
    rig.wait(chore.Completed)
    assert without_thread == ["chore/a OneShot"]


def test_an_effect_that_gets_no_thread_gives_its_turn_back(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def run(effect: Effect, _context: EffectContext) -> Signal:
        release.wait()
        return Result(intent=effect.intent)

    one_shot = Job(run, 3600.0, lambda _: "one", 1)
    rig.process(chore.kind(effects={chore.OneShot: one_shot}))
    no_thread_for(monkeypatch, "b", 1)
    for key in "abc":
        rig.send(Assign(request=request(), key=key, one_shot="w"))
    rig.wait(chore.Assigned, 3)
    release.set()
    rig.wait(chore.Completed, 2)
    rig.wait(chore.Failed)


def test_a_standing_effect_that_gets_no_thread_is_restarted(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    no_thread_for(monkeypatch, "a", 1)

    def run(_effect: Effect, context: EffectContext) -> None:
        context.send(chore.Report(text="running"))
        context.cancelled.wait()

    rig.process(chore.kind(standing=run))
    rig.send(Assign(request=request(), key="a", standing="s"))
    rig.wait(chore.Reported)
    assert [each.error for each in rig.events(kernel.EffectsFailing)] == ["RuntimeError: can't start new thread"]
