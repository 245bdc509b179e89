"""Concurrency limits of one-shot effects, per kind and per lane; each effect that ends makes room for another."""

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
from tests.kernel.chore import Assign, Result
from tests.kernel.rig import Line, Rig, request
from tests.support import scratch
from tests.support.scratch import HANG_SECONDS

LATE = 3599.0


def test_no_more_workers_run_concurrently_than_allowed(rig: Rig) -> None:
    running: set[str] = set()
    most: list[int] = []
    release = threading.Event()

    def run(effect: Effect, context: EffectContext) -> Signal:
        running.add(context.entity)
        most.append(len(running))
        release.wait(HANG_SECONDS)
        running.discard(context.entity)
        return Result(intent=effect.intent)

    rig.process(chore.kind(run), workers=3)
    for number in range(9):
        rig.send(Assign(request=request(), key=f"k{number}", one_shot="w"))
    rig.wait(chore.Assigned, 9)
    scratch.wait_until(lambda: len(most) == 3, "three workers")
    release.set()
    rig.wait(chore.Completed, 9)
    assert max(most) <= 3


def test_workers_of_one_lane_or_kind_do_not_wait_for_those_of_another(rig: Rig) -> None:
    release = threading.Event()

    def run(effect: Effect, _context: EffectContext) -> Signal:
        if effect.intent != "stop":
            release.wait(HANG_SECONDS)
        return Result(intent=effect.intent, text=effect.intent)

    lanes = {chore.OneShot: Job(run, 3600.0, lane=lambda effect: effect.intent)}
    rig.process(chore.kind(effects=lanes), workers=1)
    for key, intent in (("a", "pull"), ("b", "pull"), ("c", "stop")):
        rig.send(Assign(request=request(), key=key, one_shot=intent))
    assert [one.text for one in rig.wait(chore.Completed)] == ["stop"]
    release.set()
    rig.wait(chore.Completed, 3)


def test_a_lane_has_its_own_limit_and_order_and_every_end_of_an_effect_makes_room(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Effects like starts of pods: one that succeeds, fails, times out or is cancelled makes room for the next."""
    begun: list[str] = []
    time_outs: list[Callable[[], None]] = []
    after = Timers.after

    def recorded(timers: Timers, seconds: float, action: Callable[[], None]) -> Timer:
        """Start a timer. Record the action of the late effect's time-out, so that the test can trigger it."""
        if seconds == LATE:
            time_outs.append(action)
        return after(timers, seconds, action)

    monkeypatch.setattr(Timers, "after", recorded)
    release = {name: threading.Event() for name in ("first", "fails", "late", "withdrawn", "last")}

    def run(effect: Effect, _context: EffectContext) -> Signal:
        begun.append(effect.intent)
        if effect.intent in release:
            release[effect.intent].wait(HANG_SECONDS)
        if effect.intent == "fails":
            raise RuntimeError("no such engine")
        return Result(intent=effect.intent, text=effect.intent)

    def seconds(effect: Effect) -> float:
        return LATE if effect.intent == "late" else 3600.0

    def lane(effect: Effect) -> str:
        return "" if effect.intent in ("other", "instead") else "start"

    rig.process(chore.kind(effects={chore.OneShot: Job(run, seconds, lane, limit=1)}), workers=3)
    for number, intent in enumerate(("first", "fails", "late", "withdrawn", "last", "other")):
        rig.send(Assign(request=request(), key=f"k{number}", one_shot=intent))
        rig.wait(chore.Assigned, number + 1)
        if intent == "first":
            scratch.wait_until(lambda: begun == ["first"], "the first of the lane")
    # Another lane does not wait, and has its own limit; the next effect of this lane waits.
    assert [one.text for one in rig.wait(chore.Completed)] == ["other"]
    assert [one for one in begun if one != "other"] == ["first"]
    # `withdrawn` is no longer wanted: it never starts, and the intent that replaces it does not wait for its turn.
    rig.send(Assign(request=request(), key="k3", one_shot="instead"))
    assert [one.text for one in rig.wait(chore.Completed, 2)] == ["other", "instead"]
    release["first"].set()
    release["fails"].set()
    scratch.wait_until(lambda: begun[-1] == "late", "the effect that times out")
    (expire,) = time_outs
    expire()
    rig.wait(chore.Failed, 2)  # the late one and the failing one
    scratch.wait_until(lambda: "last" in begun, "the last of the lane")
    release["last"].set()
    rig.wait(chore.Completed, 4)
    assert begun == ["first", "other", "instead", "fails", "late", "last"]
    release["late"].set()


def test_a_turn_goes_to_the_effect_that_follows_from_its_result_if_that_has_priority(rig: Rig) -> None:
    """For example, a pod's container starts before the sandbox of the next pod."""
    begun: list[str] = []
    release = threading.Event()

    def run(effect: Effect, _context: EffectContext) -> Signal:
        begun.append(effect.intent)
        release.wait(HANG_SECONDS)
        return Result(intent=effect.intent)

    def evolve(state: chore.Chore, event: Event) -> chore.Chore | None:
        if isinstance(event, chore.Completed) and event.intent == "a":
            return replace(state, one_shot="a next")
        return chore.evolve(state, event)

    job = Job(run, 3600.0, lambda _effect: "start", limit=1, priority=lambda effect: (effect.intent,))
    decider = dataclasses.replace(chore.DECIDER, evolve=evolve)
    rig.process(chore.kind(effects={chore.OneShot: job}, decider=decider))
    rig.send(Assign(request=request(), key="k1", one_shot="a"))
    scratch.wait_until(lambda: begun == ["a"], "the first of the lane")
    rig.send(Assign(request=request(), key="k2", one_shot="c"))
    rig.send(Assign(request=request(), key="k3", one_shot="b"))
    rig.wait(chore.Assigned, 3)
    release.set()
    rig.wait(chore.Completed, 4)
    assert begun == ["a", "a next", "b", "c"]


def test_a_host_that_fails_keeps_no_turn(rig: Rig) -> None:
    running: list[str] = []
    release = threading.Event()

    def run(effect: Effect, context: EffectContext) -> Signal:
        running.append(context.entity)
        release.wait(HANG_SECONDS)
        return Result(intent=effect.intent)

    rig.process(chore.kind(effects={chore.OneShot: Job(run, 3600.0, lambda _effect: "start", limit=1)}))
    rig.send(Assign(request=request(), key="a", one_shot="w"))
    scratch.wait_until(lambda: running == ["a"], "the first of the lane")
    rig.send(Assign(request=request(), key="bad", raises=True))
    rig.wait(kernel.HostRestarted)
    rig.send(Assign(request=request(), key="b", one_shot="w"))
    release.set()
    rig.wait(chore.Completed, 2)
    assert running == ["a", "a", "b"], "the interrupted effect runs again, in its turn"


def test_effects_that_a_killed_process_left_run_again_within_the_limit(rig: Rig) -> None:
    """After a takeover, no effect has a slot yet: each outstanding effect has to get one again."""
    running: set[str] = set()
    most: list[int] = []
    dead, release = threading.Event(), threading.Event()

    def first(effect: Effect, _context: EffectContext) -> Signal:
        dead.wait(HANG_SECONDS)
        return Result(intent=effect.intent)

    def second(effect: Effect, context: EffectContext) -> Signal:
        running.add(context.entity)
        most.append(len(running))
        release.wait(HANG_SECONDS)
        running.discard(context.entity)
        return Result(intent=effect.intent)

    def kind(run: Callable[[Effect, EffectContext], Signal]) -> Kind[chore.Chore]:
        return chore.kind(effects={chore.OneShot: Job(run, 3600.0, lambda _effect: "start", limit=2)})

    line = Line()
    rig.process(kind(first), line=line)
    for number in range(5):
        rig.send(Assign(request=request(), key=f"k{number}", one_shot="w"))
    rig.wait(chore.Assigned, 5)
    line.down = True  # its lease expires
    rig.process(kind(second))
    scratch.wait_until(lambda: len(most) == 2, "two starts")
    release.set()
    rig.wait(chore.Completed, 5)
    assert (max(most), len(most)) == (2, 5)
    dead.set()
