"""Concurrency limits of one-shot effects: per kind and per lane, and each turn is given back."""

import dataclasses
import threading
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from chronolet.kernel.decider import Effect
from chronolet.kernel.effects.timers import Timer, Timers
from chronolet.kernel.kind import EffectContext, Job, Kind
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Event, Signal
from tests.kernel import chore
from tests.kernel.chore import Answer, Tell
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS

LATE = 3599.0


def test_no_more_workers_at_once_than_allowed(rig: Rig) -> None:
    at_work: set[str] = set()
    most: list[int] = []
    release = threading.Event()

    def run(effect: Effect, context: EffectContext) -> Signal:
        at_work.add(context.entity)
        most.append(len(at_work))
        release.wait(HANG_SECONDS)
        at_work.discard(context.entity)
        return Answer(intent=effect.intent)

    rig.process(chore.kind(run), workers=3)
    for number in range(9):
        rig.send(Tell(request=request(), key=f"k{number}", wish="w"))
    rig.wait(chore.Told, 9)
    scratch.wait_until(lambda: len(most) == 3, "three workers")
    release.set()
    rig.wait(chore.Answered, 9)
    assert max(most) <= 3


def test_workers_of_one_lane_or_kind_do_not_wait_for_those_of_another(rig: Rig) -> None:
    release = threading.Event()

    def run(effect: Effect, _context: EffectContext) -> Signal:
        if effect.intent != "stop":
            release.wait(HANG_SECONDS)
        return Answer(intent=effect.intent, word=effect.intent)

    lanes = {chore.OneShot: Job(run, 3600.0, lane=lambda effect: effect.intent)}
    rig.process(chore.kind(effects=lanes), workers=1)
    for key, wish in (("a", "pull"), ("b", "pull"), ("c", "stop")):
        rig.send(Tell(request=request(), key=key, wish=wish))
    assert [answered.word for answered in rig.wait(chore.Answered)] == ["stop"]
    release.set()
    rig.wait(chore.Answered, 3)


def test_a_lane_has_a_limit_of_its_own_served_in_order_and_freed_however_an_effect_ends(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts of pods: one that succeeds, fails, times out or is cancelled makes room for the next."""
    begun: list[str] = []
    out_of_time: list[Callable[[], None]] = []
    after = Timers.after

    def noted(timers: Timers, seconds: float, action: Callable[[], None]) -> Timer:
        """A time-out that the test triggers, once the effect has begun."""
        if seconds == LATE:
            out_of_time.append(action)
        return after(timers, seconds, action)

    monkeypatch.setattr(Timers, "after", noted)
    release = {name: threading.Event() for name in ("first", "fails", "late", "gone", "last")}

    def run(effect: Effect, _context: EffectContext) -> Signal:
        begun.append(effect.intent)
        if effect.intent in release:
            release[effect.intent].wait(HANG_SECONDS)
        if effect.intent == "fails":
            raise RuntimeError("no such engine")
        return Answer(intent=effect.intent, word=effect.intent)

    def seconds(effect: Effect) -> float:
        return LATE if effect.intent == "late" else 3600.0

    def lane(effect: Effect) -> str:
        return "" if effect.intent in ("other", "instead") else "start"

    rig.process(chore.kind(effects={chore.OneShot: Job(run, seconds, lane, limit=1)}), workers=3)
    for number, wish in enumerate(("first", "fails", "late", "gone", "last", "other")):
        rig.send(Tell(request=request(), key=f"k{number}", wish=wish))
        rig.wait(chore.Told, number + 1)
        if wish == "first":
            scratch.wait_until(lambda: begun == ["first"], "the first of the lane")
    # Another lane does not wait, and has another limit; the next of this one does.
    assert [one.word for one in rig.wait(chore.Answered)] == ["other"]
    assert [one for one in begun if one != "other"] == ["first"]
    # `gone` is not wanted any more: it never begins, and what is wanted instead does not wait for its turn.
    rig.send(Tell(request=request(), key="k3", wish="instead"))
    assert [one.word for one in rig.wait(chore.Answered, 2)] == ["other", "instead"]
    release["first"].set()
    release["fails"].set()
    scratch.wait_until(lambda: begun[-1] == "late", "the one that runs out of time")
    (expire,) = out_of_time
    expire()
    rig.wait(chore.GaveUp, 2)  # that one, and one that failed
    scratch.wait_until(lambda: "last" in begun, "the last of the lane")
    release["last"].set()
    rig.wait(chore.Answered, 4)
    assert begun == ["first", "other", "instead", "fails", "late", "last"]
    release["late"].set()


def test_a_turn_goes_to_what_follows_from_its_answer_if_that_comes_first(rig: Rig) -> None:
    """A pod's container starts before the sandbox of the next pod."""
    begun: list[str] = []
    release = threading.Event()

    def run(effect: Effect, _context: EffectContext) -> Signal:
        begun.append(effect.intent)
        release.wait(HANG_SECONDS)
        return Answer(intent=effect.intent)

    def evolve(state: chore.Chore, event: Event) -> chore.Chore | None:
        if isinstance(event, chore.Answered) and event.wish == "a":
            return replace(state, wish="a next")
        return chore.evolve(state, event)

    job = Job(run, 3600.0, lambda _effect: "start", limit=1, priority=lambda effect: (effect.intent,))
    decider = dataclasses.replace(chore.DECIDER, evolve=evolve)
    rig.process(chore.kind(effects={chore.OneShot: job}, decider=decider))
    rig.send(Tell(request=request(), key="k1", wish="a"))
    scratch.wait_until(lambda: begun == ["a"], "the first of the lane")
    rig.send(Tell(request=request(), key="k2", wish="c"))
    rig.send(Tell(request=request(), key="k3", wish="b"))
    rig.wait(chore.Told, 3)
    release.set()
    rig.wait(chore.Answered, 4)
    assert begun == ["a", "a next", "b", "c"]


def test_a_host_that_fails_keeps_no_turn(rig: Rig) -> None:
    at_work: list[str] = []
    release = threading.Event()

    def run(effect: Effect, context: EffectContext) -> Signal:
        at_work.append(context.entity)
        release.wait(HANG_SECONDS)
        return Answer(intent=effect.intent)

    rig.process(chore.kind(effects={chore.OneShot: Job(run, 3600.0, lambda _effect: "start", limit=1)}))
    rig.send(Tell(request=request(), key="a", wish="w"))
    scratch.wait_until(lambda: at_work == ["a"], "the first of the lane")
    rig.send(Tell(request=request(), key="bad", raises=True))
    rig.wait(kernel.HostRestarted)
    rig.send(Tell(request=request(), key="b", wish="w"))
    release.set()
    rig.wait(chore.Answered, 2)
    assert at_work == ["a", "a", "b"], "what was under way is asked for again, in its turn"


def test_starts_that_a_killed_process_left_begin_again_no_more_at_once_than_allowed(rig: Rig) -> None:
    """After a takeover no slots exist: each effect that is still wanted gets a new one."""
    at_work: set[str] = set()
    most: list[int] = []
    dead, release = threading.Event(), threading.Event()

    def first(effect: Effect, _context: EffectContext) -> Signal:
        dead.wait(HANG_SECONDS)
        return Answer(intent=effect.intent)

    def second(effect: Effect, context: EffectContext) -> Signal:
        at_work.add(context.entity)
        most.append(len(at_work))
        release.wait(HANG_SECONDS)
        at_work.discard(context.entity)
        return Answer(intent=effect.intent)

    def kind(run: Callable[[Effect, EffectContext], Signal]) -> Kind[chore.Chore]:
        return chore.kind(effects={chore.OneShot: Job(run, 3600.0, lambda _effect: "start", limit=2)})

    line = Line()
    rig.process(kind(first), line=line)
    for number in range(5):
        rig.send(Tell(request=request(), key=f"k{number}", wish="w"))
    rig.wait(chore.Told, 5)
    line.away = True  # and its lease runs out
    rig.process(kind(second))
    scratch.wait_until(lambda: len(most) == 2, "two starts")
    release.set()
    rig.wait(chore.Answered, 5)
    assert (max(most), len(most)) == (2, 5)
    dead.set()
