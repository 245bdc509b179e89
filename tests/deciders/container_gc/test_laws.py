"""Random histories: a run removes no running containers and none that belong to others."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.container_gc import wanted
from chronolet.container_gc.decider import DECIDER
from chronolet.container_gc.effects import Collecting, Turns
from chronolet.container_gc.inventory import Inventory
from chronolet.ports.pods.pod_logs import NoPodLogs
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import SandboxSpec
from chronolet_schemas import container_gc
from chronolet_schemas.envelope import Event
from chronolet_schemas.pleg import SANDBOX

IMAGE = "image:1"
LATER = 10**9
"""How long after the last creation the inventory takes place, in milliseconds."""


class Context:
    """An effect context that permits everything."""

    entity = cause = token = ""
    cancelled = threading.Event()

    def fence(self, point: str) -> None:
        """Permit everything."""

    def done(self, point: str) -> None:
        """Do nothing."""

    def send(self, signal: Any, *, cause: str = "") -> None:
        """Drop the signal."""


Box = tuple[str, str, str, str]
"""A container: its owner, the uid of its pod, its name, its state."""
boxes = st.lists(
    st.tuples(
        st.sampled_from(["ours", "ours", "ours", "odd", "other node", "foreign"]),
        st.sampled_from(["u1", "u2", "u9"]),
        st.sampled_from(["app", "log", SANDBOX]),
        st.sampled_from(["created", "running", "frozen", "exited", "exited", "exited"]),
    ),
    min_size=1,
    max_size=25,
)
policies = st.builds(
    container_gc.Policy,
    min_age_milliseconds=st.sampled_from([0, 60_000, 2 * LATER]),
    max_per_container=st.integers(-1, 3),
    max_containers=st.integers(-1, 5),
)


def marks(whose: str, uid: str, name: str, attempt: int) -> dict[str, str]:
    if whose == "foreign":
        return {"role": "x"}
    if whose == "odd":
        return labels.of_node("node")
    owner = labels.Owner(pod=f"default/{uid}", uid=uid, container=name, attempt=attempt)
    return labels.written("node" if whose == "ours" else "another", owner)


class World:
    """A machine with its collector, on which dead containers are started again from outside."""

    def __init__(self, found: list[Box], policy: container_gc.Policy, parallel: int = 1) -> None:
        self.runtime = FakeRuntime(images=[IMAGE])
        self.foreign: set[str] = set()
        self.ever_running: set[str] = set()
        for attempt, (whose, uid, name, state) in enumerate(found):
            spec = SandboxSpec(
                name=f"box{attempt}", labels=marks(whose, uid, name, attempt), image=IMAGE, hostname="box"
            )
            box = self.runtime.create_sandbox(spec)
            if state != "created":
                self.runtime.start(box)
            if state == "exited":
                self.runtime.end(box)
            if state == "frozen":
                self.runtime.freeze(box)
            if whose not in ("ours", "odd"):
                self.foreign.add(box)
        self.collecting = Collecting(Inventory(self.runtime, NoPodLogs(), "node", policy, parallel=parallel), 60)
        self.state = DECIDER.initial
        self.now = max(one.created_at for one in self.runtime.list({})) + LATER
        self.note_running()

    def ids(self) -> set[str]:
        return {one.id for one in self.runtime.list({})}

    def note_running(self) -> None:
        self.ever_running |= {one.id for one in self.runtime.list({}) if one.state in ("running", "unknown")}

    def send(self, message: Any) -> list[Event]:
        events = list(DECIDER.decide(self.state, message, self.now))
        for event in events:
            self.state = DECIDER.evolve(self.state, event) or DECIDER.initial
        return events

    def run(self, mischief: set[int], order: int = 0) -> list[Event]:
        """Make a whole run, and return its events. `mischief`: the removals before which the dead container is started
        from outside. `order`: which of several outstanding removals ends first.
        """
        events = self.send(self.collecting.inventory.scan())
        turn = 0
        while effects := [one for one in DECIDER.outstanding(self.state) if isinstance(one, wanted.Remove)]:
            effect = effects[order % len(effects)]
            if turn in mischief:
                self.runtime.start(effect.victim.id)
                self.note_running()
            events += self.send(self.collecting.remove(effect, Context()))
            turn += 1
        return events


@settings(max_examples=300, deadline=None)
@given(
    boxes,
    policies,
    st.sets(st.sampled_from(["u1", "u2"])),
    st.booleans(),
    st.tuples(st.sets(st.integers(0, 8)), st.integers(1, 8), st.integers(0, 15)),
)
def test_a_run_removes_nothing_that_runs_or_belongs_to_others(
    found: list[Box], policy: container_gc.Policy, known: set[str], ready: bool, turns: tuple[set[int], int, int]
) -> None:
    mischief, parallel, order = turns
    world = World(found, policy, parallel)
    before, running = world.ids(), set(world.ever_running)
    for uid in sorted(known):
        world.state = DECIDER.evolve(world.state, container_gc.PodNoted(pod=f"default/{uid}", uid=uid)) or world.state
    if ready:
        world.state = DECIDER.evolve(world.state, container_gc.SourcesReady()) or world.state
    events = world.run(mischief, order)
    # The collector does not even attempt to remove them; a refusal by the runtime would be the second safeguard.
    meant = {one.id for event in events if isinstance(event, container_gc.RunStarted) for one in event.victims}
    assert not meant & (running | world.foreign)
    gone = before - world.ids()
    assert gone <= meant
    assert not gone & world.ever_running
    assert not gone & world.foreign
    # The recorded result matches what was removed.
    assert {one.id for one in events if isinstance(one, container_gc.Removed)} == gone
    (finished,) = (one for one in events if isinstance(one, container_gc.RunFinished))
    assert finished.removed == len(gone)
    assert world.state.run is None


LOST = labels.Owner(pod="default/lost", uid="lost", container="app", attempt=0, run="another log")


def test_a_run_for_left_alone_containers_removes_only_dead_ones_of_this_node() -> None:
    found: list[Box] = [("ours", "u1", "app", "exited")] * 3
    found += [(whose, "u9", "app", "exited") for whose in ("odd", "other node", "foreign")]
    world = World(found, container_gc.Policy(), parallel=4)
    world.state = DECIDER.evolve(world.state, container_gc.SourcesReady()) or world.state
    usual, left = world.ids(), set[str]()
    for node, state in (("node", "exited"), ("node", "exited"), ("node", "running"), ("another", "exited")):
        spec = SandboxSpec(name=f"lost{len(world.ids())}", labels=labels.written(node, LOST), image=IMAGE, hostname="x")
        box = world.runtime.create_sandbox(spec)
        world.runtime.start(box)
        if state == "exited":
            world.runtime.end(box)
            left |= {box} if node == "node" else set()
        usual |= {box} - left
    world.send(container_gc.CollectContainers(request="r1", left_alone=True))
    (scan,) = (one for one in DECIDER.outstanding(world.state) if isinstance(one, wanted.Look))
    events = world.send(world.collecting.scan(scan, Context()))
    while effects := [one for one in DECIDER.outstanding(world.state) if isinstance(one, wanted.Remove)]:
        events += world.send(world.collecting.remove(effects[0], Context()))
    assert world.ids() == usual
    assert {one.id for one in events if isinstance(one, container_gc.Removed)} == left
    assert len(left) == 2


def test_random_runs_remove_something() -> None:
    found: list[Box] = [("ours", "u1", "app", "exited")] * 3 + [("odd", "", "", "exited")]
    world = World(found, container_gc.Policy())
    assert len([one for one in world.run(set()) if isinstance(one, container_gc.Removed)]) == 3


class WatchedTurns(Turns):
    """Turns that show when an inventory waits for its turn."""

    def __init__(self) -> None:
        super().__init__(2)
        self.waiting = threading.Event()

    def scanning(self) -> AbstractContextManager[None]:
        self.waiting.set()
        return super().scanning()


class Watching(Context):
    """A context that is cancelled by the first inventory."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.scans: list[Any] = []

    def send(self, signal: Any, *, cause: str = "") -> None:
        self.scans.append(signal)
        self.cancelled.set()


def test_no_inventory_begins_during_a_removal() -> None:
    world, turns, watching = (
        World([("ours", "u1", "app", "exited")] * 3, container_gc.Policy()),
        WatchedTurns(),
        Watching(),
    )
    collecting = replace(world.collecting, turns=turns)
    watch = threading.Thread(target=collecting.watch, args=(wanted.LookPeriodically(subject="p", intent="p"), watching))

    class Removing(Context):
        def fence(self, point: str) -> None:
            """Start an inventory immediately before the runtime removes the container."""
            watch.start()
            assert turns.waiting.wait(60), "no inventory began"

    world.send(collecting.inventory.scan())
    (effect,) = (one for one in DECIDER.outstanding(world.state) if isinstance(one, wanted.Remove))
    collecting.remove(effect, Removing())
    watch.join(60)
    (scan,) = watching.scans
    assert len(scan.containers) == 2
    assert effect.victim.id not in {one.id for one in scan.containers}


def test_removals_run_concurrently_up_to_a_limit_and_never_during_an_inventory() -> None:
    turns, lock = Turns(3), threading.Lock()
    at_work: dict[str, int] = {"remove": 0, "scan": 0}
    most = {"remove": 0, "scan": 0}
    mixed: list[dict[str, int]] = []

    def work(what: str) -> None:
        with turns.removing() if what == "remove" else turns.scanning():
            with lock:
                at_work[what] += 1
                most[what] = max(most[what], at_work[what])
                mixed.extend([dict(at_work)] if all(at_work.values()) else [])
            time.sleep(0.001)
            with lock:
                at_work[what] -= 1

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, (["remove"] * 10 + ["scan"]) * 20))
    assert not mixed
    assert most["scan"] == 1
    assert 1 < most["remove"] <= 3
