"""Effects: one per subject, with a time-out, retried with back-off, never for an intent that is over."""

import threading
from collections.abc import Callable

import pytest

from chronolet.kernel.decider import Effect
from chronolet.kernel.effects.slot import LostOwnership
from chronolet.kernel.hosting import host
from chronolet.kernel.kind import EffectContext, Ended, EventDriven, Job
from chronolet.kernel.timing import Timing
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Record, Signal
from tests.kernel import chore
from tests.kernel.chore import Answer, Tell
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS

LATE = 3599.0
STARTED = Record("kernel.LogStarted@1", "node/n", "", "", "", b"\x80")


@pytest.fixture(autouse=True)
def short_pauses(rig: Rig) -> None:
    rig.timing = Timing(effect_first_pause_seconds=0.02, fenced_pause_seconds=0.02)


def test_an_effect_out_of_time_fails(rig: Rig) -> None:
    release = threading.Event()

    def run(effect: Effect, _context: EffectContext) -> Signal:
        release.wait()
        return Answer(intent=effect.intent, word="late")

    rig.process(chore.kind(run, timeout=0.05))
    rig.send(Tell(request=request(), key="a", wish="w"))
    (gave_up,) = rig.wait(chore.GaveUp)
    assert gave_up == chore.GaveUp(wish="w", error="it did not end in time", timed_out=True)
    release.set()
    rig.send(Tell(request=request(), key="a"))
    rig.wait(chore.Told, 2)
    assert not rig.events(chore.Answered), "what comes after the time-out is nobody's answer"


def test_a_workers_exception_reaches_the_decider(rig: Rig) -> None:
    def run(_effect: Effect, _context: EffectContext) -> Signal:
        raise RuntimeError("no such engine")

    rig.process(chore.kind(run))
    asked = rig.send(Tell(request=request(), key="a", wish="w"))
    (gave_up,) = rig.wait(chore.GaveUp)
    assert gave_up.error == "RuntimeError: no such engine"
    told = next(entry for entry in rig.log() if entry.cause == asked)
    assert next(e for e in rig.log() if e.type == "chore.GaveUp@1").cause == str(told.position)


def test_one_effect_per_subject_and_a_result_for_an_old_intent_is_ignored(rig: Rig) -> None:
    running: list[str] = []
    release = threading.Event()

    def run(effect: Effect, context: EffectContext) -> Signal:
        running.append(effect.intent)
        assert len(running) == 1
        if effect.intent == "old":
            context.cancelled.wait()
            release.wait()
        running.remove(effect.intent)
        return Answer(intent=effect.intent)

    rig.process(chore.kind(run))
    rig.send(Tell(request=request(), key="a", wish="old"))
    scratch.wait_until(lambda: running == ["old"], "the first effect")
    rig.send(Tell(request=request(), key="a", wish="new"))
    rig.wait(chore.Told, 2)
    release.set()
    (answered,) = rig.wait(chore.Answered)
    assert answered.wish == "new"
    assert not rig.events(chore.GaveUp)


def test_a_standing_effect_that_fails_is_started_again_with_back_off_and_an_event(rig: Rig) -> None:
    starts: list[str] = []

    def run(effect: Effect, context: EffectContext) -> None:
        starts.append(effect.intent)
        if len(starts) < 4:
            raise RuntimeError("stream broken")
        context.send(chore.Word(word="at last"))
        context.cancelled.wait()

    rig.process(chore.kind(standing=run))
    rig.send(Tell(request=request(), key="a", standing="s"))
    rig.wait(chore.Heard)
    failing = rig.events(kernel.EffectsFailing)
    assert [each.retry_in_milliseconds for each in failing] == [20, 40, 80]
    assert {(each.effect, each.about, each.error) for each in failing} == {
        ("Standing", "chore/a standing", "RuntimeError: stream broken")
    }


def test_a_new_intent_does_not_wait_for_the_pause_of_the_former_one(rig: Rig) -> None:
    rig.timing = Timing(effect_first_pause_seconds=3600.0, effect_longest_pause_seconds=3600.0)

    def run(effect: Effect, context: EffectContext) -> None:
        if effect.intent == "bad":
            raise RuntimeError("bad")
        context.send(chore.Word(word=effect.intent))
        context.cancelled.wait()

    rig.process(chore.kind(standing=run))
    rig.send(Tell(request=request(), key="a", standing="bad"))
    rig.wait(kernel.EffectsFailing)
    rig.send(Tell(request=request(), key="a", standing="good"))
    assert rig.wait(chore.Heard)[0].word == "good"


def test_a_standing_effect_is_cancelled_when_it_is_no_longer_wanted(rig: Rig) -> None:
    begun, ended = threading.Event(), threading.Event()

    def run(_effect: Effect, context: EffectContext) -> None:
        begun.set()
        context.cancelled.wait()
        with pytest.raises(LostOwnership):
            context.fence("anything")
        ended.set()

    rig.process(chore.kind(standing=run))
    rig.send(Tell(request=request(), key="a", standing="s"))
    assert begun.wait(HANG_SECONDS)
    rig.send(Tell(request=request(), key="a"))
    assert ended.wait(HANG_SECONDS)


def test_an_event_driven_effect_has_no_thread_and_is_ended_once(rig: Rig) -> None:
    ended: list[str] = []
    threads: list[threading.Thread] = []

    def begin(effect: Effect, context: EffectContext, _ended: Ended) -> Callable[[], None]:
        threads.extend(threading.enumerate())
        context.fence("tended")
        context.send(chore.Word(word=f"begun {effect.intent}"))
        return lambda: ended.append(f"ended {effect.intent}, cancelled: {context.cancelled.is_set()}")

    rig.process(chore.kind(standing={chore.Standing: EventDriven(begin)}))
    before = threading.enumerate()
    for number, wish in enumerate(("one", "one", "two", "", "three"), 1):
        rig.send(Tell(request=request(), key="a", standing=wish))
        rig.wait(chore.Told, number)
        if wish:
            scratch.wait_until(
                lambda wish=wish: rig.events(chore.Heard)[-1:] == [chore.Heard(word=f"begun {wish}")], wish
            )
    assert [heard.word for heard in rig.events(chore.Heard)] == ["begun one", "begun two", "begun three"]
    assert ended == ["ended one, cancelled: True", "ended two, cancelled: True"]
    assert set(threads) <= set(before)


def test_an_event_driven_effect_that_fails_is_restarted_with_back_off_and_an_event(rig: Rig) -> None:
    begun: list[str] = []

    def begin(effect: Effect, context: EffectContext, ended: Ended) -> Callable[[], None]:
        begun.append(effect.intent)
        if len(begun) == 1:
            raise RuntimeError("at once")
        if len(begun) == 2:
            threading.Thread(target=ended, args=(RuntimeError("later"),)).start()
        else:
            context.send(chore.Word(word="at last"))
        return lambda: None

    rig.process(chore.kind(standing={chore.Standing: EventDriven(begin)}))
    rig.send(Tell(request=request(), key="a", standing="s"))
    rig.wait(chore.Heard)
    failing = rig.events(kernel.EffectsFailing)
    assert [each.error for each in failing] == ["RuntimeError: at once", "RuntimeError: later"]


def test_progress_is_throttled_but_a_standing_effect_is_not(rig: Rig) -> None:
    rig.timing = Timing(progress_seconds=3600.0)

    def run(effect: Effect, context: EffectContext) -> Signal:
        for number in range(10):
            context.send(chore.Word(word=f"{effect.intent} {number}"))
        return Answer(intent=effect.intent)

    def stand(_effect: Effect, context: EffectContext) -> None:
        for number in range(10):
            context.send(chore.Word(word=f"s {number}"))
        context.cancelled.wait()

    rig.process(chore.kind(run, stand))
    rig.send(Tell(request=request(), key="a", wish="w"))
    rig.wait(chore.Answered)
    assert [heard.word for heard in rig.events(chore.Heard)] == ["w 0"]
    rig.send(Tell(request=request(), key="a", standing="s"))
    rig.wait(chore.Heard, 11)


def test_no_effect_without_a_valid_lease_and_all_of_them_after(rig: Rig) -> None:
    line, fenced = Line(), threading.Event()

    def run(effect: Effect, context: EffectContext) -> Signal:
        if not fenced.is_set():
            line.away = True
            scratch.wait_until(lambda: not process.lease.valid(), "the end of the lease")
        try:
            context.fence("look")
        except LostOwnership:
            fenced.set()
            raise
        assert not line.away, "allowed to act without a lease"
        return Answer(intent=effect.intent)

    process = rig.process(chore.kind(run), line=line)
    rig.send(Tell(request=request(), key="a", wish="w"))
    assert fenced.wait(HANG_SECONDS)
    line.away = False
    rig.wait(chore.Answered)


class Points:
    """A Faults port that records its points."""

    def __init__(self) -> None:
        self.passed: list[str] = []

    def point(self, name: str) -> None:
        self.passed.append(name)


def test_every_step_and_every_call_of_an_effect_is_announced_before_and_after(rig: Rig) -> None:
    points = Points()
    rig.process(chore.kind(), faults=points)
    rig.send(Tell(request=request(), key="a", wish="w"))
    rig.wait(chore.Answered)
    scratch.wait_until(lambda: "step/after chore chore.Answered" in points.passed, "the last point")
    assert points.passed[-6:] == [
        "step/before chore chore.Told",
        "step/after chore chore.Told",
        "effect/before answer chore/a wish",
        "effect/after answer chore/a wish",
        "step/before chore chore.Answered",
        "step/after chore chore.Answered",
    ]


def test_what_waits_is_folded_into_one_step(rig: Rig) -> None:
    points = Points()
    process = rig.process(chore.kind(), faults=points, begin=False)
    rig.store.begin("r", {"chore": 1}, STARTED)
    for _ in range(host.BATCH + 20):
        rig.send(Tell(request=request(), key="a"))
    process.start()
    rig.wait(chore.Told, host.BATCH + 20)
    before = [point for point in points.passed if point.startswith("step/before")]
    assert len(before) <= 4
    assert before[0].count("chore.Told") == host.BATCH


def no_thread_for(monkeypatch: pytest.MonkeyPatch, key: str, tries: int) -> list[str]:
    """Makes the given number of thread starts of an entity's effects fail; records which."""
    real, failed = threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith(f"chore/{key} ") and len(failed) < tries:
            failed.append(thread.name)
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    return failed


def test_an_effect_without_a_thread_fails_alone(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = no_thread_for(monkeypatch, "a", 1)
    rig.process(chore.kind())
    rig.send(Tell(request=request(), key="a", wish="w"))
    rig.send(Tell(request=request(), key="b", wish="w"))
    (gave_up,) = rig.wait(chore.GaveUp)
    assert gave_up == chore.GaveUp(wish="w", error="RuntimeError: can't start new thread")
    rig.wait(chore.Answered)
    assert failed == ["chore/a OneShot"]


def test_a_turn_that_nobody_has_a_thread_for_is_given_back(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def run(effect: Effect, _context: EffectContext) -> Signal:
        release.wait()
        return Answer(intent=effect.intent)

    one_shot = Job(run, 3600.0, lambda _: "one", 1)
    rig.process(chore.kind(effects={chore.OneShot: one_shot}))
    no_thread_for(monkeypatch, "b", 1)
    for key in "abc":
        rig.send(Tell(request=request(), key=key, wish="w"))
    rig.wait(chore.Told, 3)
    release.set()
    rig.wait(chore.Answered, 2)
    rig.wait(chore.GaveUp)


def test_a_standing_effect_without_a_thread_is_started_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    no_thread_for(monkeypatch, "a", 1)

    def run(_effect: Effect, context: EffectContext) -> None:
        context.send(chore.Word(word="at last"))
        context.cancelled.wait()

    rig.process(chore.kind(standing=run))
    rig.send(Tell(request=request(), key="a", standing="s"))
    rig.wait(chore.Heard)
    assert [each.error for each in rig.events(kernel.EffectsFailing)] == ["RuntimeError: can't start new thread"]
