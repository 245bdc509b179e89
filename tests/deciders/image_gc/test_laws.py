"""Random histories: a run removes no image that is in use, pinned or young, and no more images than needed."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chronolet.adapters.fakes.containers import image_of
from chronolet.adapters.fakes.images import FakeImages
from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.image_gc import wanted
from chronolet.image_gc.decider import DECIDER
from chronolet.image_gc.effects import Collecting
from chronolet.image_gc.inventory import Inventory
from chronolet.image_gc.planning.pinning import LABEL
from chronolet.ports.runtime.images import HeldImage
from chronolet.ports.runtime.runtime import SandboxSpec
from chronolet_schemas import image_gc
from chronolet_schemas.envelope import Event
from tests.deciders.container_gc.test_laws import Context

T0 = 1_800_000_000_000
AGED = 60_000


images = st.lists(
    st.tuples(
        st.integers(1, 300), st.booleans(), st.sampled_from(["unused", "unused", "running", "dead"]), st.booleans()
    ),
    min_size=1,
    max_size=15,
)
policies = st.builds(
    lambda high, apart, least, most: image_gc.Policy(
        high_threshold_percent=high,
        low_threshold_percent=max(high - apart, 0),
        min_age_milliseconds=least,
        max_age_milliseconds=most,
    ),
    st.integers(1, 100),
    st.integers(1, 100),
    st.sampled_from([0, AGED // 2]),
    st.sampled_from([0, AGED - 1]),
)


class World:
    """A machine with images, containers that use some of them, and its collector."""

    def __init__(self, found: list[tuple[int, bool, str, bool]], policy: image_gc.Policy) -> None:
        names = [f"image{number}:1" for number in range(len(found))]
        self.ids = [image_of(name).id for name in names]
        self.runtime = FakeRuntime(images=names)
        held = [
            HeldImage(id=known, size_bytes=size, names=(name,), labels={LABEL: "true"} if pinned else {})
            for known, name, (size, pinned, _, _) in zip(self.ids, names, found, strict=True)
        ]
        self.images = FakeImages(held, capacity_bytes=3000, other_bytes=500)
        self.used: set[str] = set()
        for number, (_, _, user, _) in enumerate(found):
            if user != "unused":
                self.use(number, dead=user == "dead")
        self.collecting = Collecting(Inventory(self.runtime, self.images, "node", policy), 30, 300)
        self.state = DECIDER.initial

    def use(self, number: int, *, dead: bool) -> None:
        name = f"user{len(self.runtime.list({}))}"
        box = self.runtime.create_sandbox(SandboxSpec(name=name, labels={}, image=f"image{number}:1", hostname="user"))
        self.runtime.start(box)
        if dead:
            self.runtime.end(box)
        self.images.users.add(self.ids[number])
        self.used.add(self.ids[number])

    def send(self, message: Any, now: int) -> list[Event]:
        events = list(DECIDER.decide(self.state, message, now))
        for event in events:
            self.state = DECIDER.evolve(self.state, event) or DECIDER.initial
        return events

    def run(self, mischief: dict[int, int], now: int) -> list[Event]:
        """Make a whole run, and return its events. `mischief` maps the number of a removal to an image that a container
        begins to use before it.
        """
        events = self.send(self.collecting.inventory.scan(with_disk=True), now)
        turn = 0
        while effect := next(
            (one for one in DECIDER.outstanding(self.state) if isinstance(one, wanted.RemoveImage | wanted.Look)), None
        ):
            if isinstance(effect, wanted.Look):
                events += self.send(self.collecting.scan(effect, Context()), now)
                continue
            if turn in mischief and self.ids[mischief[turn] % len(self.ids)] in self.images.images:
                self.use(mischief[turn] % len(self.ids), dead=True)
            events += self.send(self.collecting.remove(effect, Context()), now)
            turn += 1
        return events


@settings(max_examples=300, deadline=None)
@given(images, policies, st.booleans(), st.dictionaries(st.integers(0, 5), st.integers(0, 20), max_size=3))
def test_a_run_removes_no_image_that_is_used_or_pinned(
    found: list[tuple[int, bool, str, bool]], policy: image_gc.Policy, unused: bool, mischief: dict[int, int]
) -> None:
    world = World(found, policy)
    early = [one for one, (_, _, _, known) in zip(world.ids, found, strict=True) if known]
    # These images have been known for a long time; the others appear during the run.
    later = {known: world.images.images.pop(known) for known in set(world.ids) - set(early)}
    world.send(world.collecting.inventory.scan(with_disk=False), T0)
    world.images.images.update(later)
    pinned = {one for one, (_, is_pinned, _, _) in zip(world.ids, found, strict=True) if is_pinned}
    before, used = world.images.disk(), set(world.used)
    events: list[Event] = []
    if unused:
        world.send(image_gc.CollectImages(request="r", unused=True), T0 + AGED)
        scan = world.collecting.scan(wanted.Look(subject="run", intent="look/1"), Context())
        events += world.send(scan, T0 + AGED)
    events += world.run(mischief, T0 + AGED)
    # The collector does not even attempt to remove them; a refusal by the runtime would be the second safeguard.
    planned = [one for one in events if isinstance(one, image_gc.RunStarted | image_gc.DiskReadAgain)]
    meant = {one.id for event in planned for one in event.candidates}
    assert not meant & (used | pinned)
    gone = set(world.images.removed)
    assert gone <= meant
    assert not gone & world.used
    assert not gone & pinned
    if policy.min_age_milliseconds:
        assert not gone & set(later)
    # The recorded result matches what was removed.
    assert {one.id for one in events if isinstance(one, image_gc.ImageRemoved)} == gone
    if not unused and not policy.max_age_milliseconds:
        percent = 100 - before.available_bytes * 100 // before.capacity_bytes
        assert not gone or percent >= policy.high_threshold_percent
        _no_more_than_needed(world, events)
    assert world.state.run is None


def _no_more_than_needed(world: World, events: list[Event]) -> None:
    (finished,) = (one for one in events if isinstance(one, image_gc.RunFinished))
    sizes = [one.size_bytes for one in events if isinstance(one, image_gc.ImageRemoved)]
    wanted_bytes = finished.wanted_bytes or 0
    assert sum(sizes[:-1]) < max(wanted_bytes, 1)
    assert finished.freed_bytes == sum(sizes)
    assert len(world.images.removed) == finished.removed


def test_random_runs_remove_something() -> None:
    world = World([(300, False, "unused", True)] * 8, image_gc.Policy(min_age_milliseconds=0))
    assert [type(one) for one in world.run({}, T0)].count(image_gc.ImageRemoved) >= 1
