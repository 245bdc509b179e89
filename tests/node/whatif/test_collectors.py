"""What-if answers about the collectors equal what they decide with the changed settings, while they are exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chronolet.container_gc import signals as dead
from chronolet.container_gc import wanted as dead_effects
from chronolet.image_gc import signals as images
from chronolet.image_gc import wanted as image_effects
from chronolet.node.whatif.wanted import ChangeError
from chronolet_schemas import container_gc, image_gc
from tests.deciders.pod.life import manifest
from tests.node.whatif.questions import ask, lived
from tests.support.recorded_node import NODE, RecordedNode

CAPACITY = 1000
MINUTE = 60_000


class Disk:
    """A node's images, which fill its disk."""

    def __init__(self, **policy: Any) -> None:
        self.node = RecordedNode()
        self.node.start()
        self.policy = image_gc.Policy(**policy)
        self.sizes: dict[str, int] = {}

    def look(self, intent: str = "") -> None:
        """Scan, and carry out what follows."""
        held = tuple(image_gc.Image(id=name, size_bytes=size, names=(name,)) for name, size in self.sizes.items())
        free = images.Disk(capacity_bytes=CAPACITY, available_bytes=CAPACITY - sum(self.sizes.values()))
        scan = images.Looked(intent=intent, node=NODE, policy=self.policy, images=held, disk=free)
        self.node.tell("image_gc", "node", scan)
        self._carry_out()

    def request(self) -> None:
        self.node.tell("image_gc", "node", image_gc.CollectImages(request=f"r{self.node.now}"))
        self._carry_out()

    def _carry_out(self) -> None:
        decider = self.node.kinds["image_gc"].decider
        for effect in decider.outstanding(self.node.states["image_gc"]["node"]):
            if isinstance(effect, image_effects.RemoveImage):
                self.sizes.pop(effect.id, None)
                self.node.tell("image_gc", "node", images.RemovalDone(subject=effect.subject, intent=effect.intent))
                self._carry_out()
                return
            if isinstance(effect, image_effects.Look):
                self.look(effect.intent)
                return


def filled(sizes: Sequence[int], **policy: Any) -> Disk:
    """Return a disk after images were added one after the other, with a scan after each, and one requested run."""
    disk = Disk(min_age_milliseconds=0, **policy)
    for number, size in enumerate(sizes):
        disk.sizes[f"image{number}"] = size
        disk.look()
        disk.node.passes(MINUTE)
    disk.request()
    return disk


THRESHOLDS = st.tuples(st.integers(0, 98), st.integers(1, 99)).filter(lambda both: both[0] < both[1])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(10, 190), min_size=1, max_size=5), THRESHOLDS, THRESHOLDS)
def test_thresholds_of_images(sizes: list[int], before: tuple[int, int], after: tuple[int, int]) -> None:
    def run(both: tuple[int, int]) -> RecordedNode:
        return filled(sizes, low_threshold_percent=both[0], high_threshold_percent=both[1]).node

    node = run(before)
    answer = ask(node, f"image-gc-low-threshold={after[0]}", f"image-gc-high-threshold={after[1]}")
    live = lived(run(after))
    assert answer.exact == live[: len(answer.exact)]
    if answer.runs.first is None:
        assert answer.exact == live
    # Removals always succeed here, so that the estimate is right, too, except for the scans that the log lacks.
    removed = [one for one in answer.changed if one.startswith("removed ")]
    assert removed == [one for one in live if one.startswith("removed ")]


def test_an_age_is_uncertain_between_two_recorded_scans() -> None:
    disk = filled((100, 100), high_threshold_percent=15, low_threshold_percent=10)
    answer = ask(disk.node, "minimum-image-ttl-duration=90s")
    assert answer.runs.assumed
    assert answer.counted("images removed")[0] >= 1


def test_a_disk_that_was_not_read() -> None:
    disk = Disk(high_threshold_percent=100)
    disk.sizes["image0"] = 900
    scan = images.Looked(node=NODE, policy=disk.policy, images=(image_gc.Image(id="image0", size_bytes=900),))
    disk.node.tell("image_gc", "node", scan)
    answer = ask(disk.node, "image-gc-high-threshold=85")
    assert any("the log has no readings of the disk" in one for one in answer.unknown)


def test_nothing_is_exact_while_only_the_record_collects_no_images() -> None:
    disk = Disk(high_threshold_percent=100)
    disk.sizes["image0"] = 900
    scan = images.Looked(node=NODE, policy=disk.policy, images=(image_gc.Image(id="image0", size_bytes=900),))
    disk.node.tell("image_gc", "node", scan)
    disk.node.passes(10 * MINUTE)
    disk.request()
    answer = ask(disk.node, "image-gc-high-threshold=85")
    assert answer.runs.assumed
    assert answer.exact == []


def test_runs_that_fail_only_with_the_change_are_not_all_in_the_log() -> None:
    def run(high: int) -> RecordedNode:
        disk = Disk(high_threshold_percent=high, low_threshold_percent=10, min_age_milliseconds=2 * MINUTE)
        disk.sizes["young"] = 750
        for _ in range(5):
            disk.look()
            disk.node.passes(MINUTE)
        return disk.node

    answer, live = ask(run(85), "image-gc-high-threshold=70"), lived(run(70))
    assert answer.exact == live[: len(answer.exact)]
    assert answer.runs.assumed


def test_thresholds_that_contradict_each_other() -> None:
    with pytest.raises(ChangeError, match="low threshold: found 80, expected less than the high threshold, 70, with"):
        ask(filled((100,)).node, "image-gc-high-threshold=70")


def _dead(count: int, of: str = "app") -> tuple[dead.RuntimeObject, ...]:
    return tuple(
        dead.RuntimeObject(
            id=f"{of}-{number}",
            name=f"{of}-{number}",
            pod="default/web",
            uid="u1",
            container=of,
            attempt=number,
            created_at=number * 1000,
            state="exited",
            sandbox_id="box",
        )
        for number in range(count)
    )


class Dead:
    """A node's dead containers."""

    def __init__(self, policy: container_gc.Policy) -> None:
        self.node = RecordedNode()
        self.node.start()
        self.policy = policy
        self.objects: dict[str, dead.RuntimeObject] = {}
        self.node.apply(manifest())

    def look(self, intent: str = "") -> None:
        scan = dead.Looked(
            intent=intent,
            node=NODE,
            policy=self.policy,
            parallel=2,
            containers=tuple(self.objects.values()),
        )
        self.node.tell("container_gc", "node", scan)
        decider = self.node.kinds["container_gc"].decider
        while effects := [
            one
            for one in decider.outstanding(self.node.states["container_gc"]["node"])
            if isinstance(one, dead_effects.Remove)
        ]:
            # Of those that run at the same time, which one is done first does not depend on the policy.
            effect = min(effects, key=lambda one: one.victim.id)
            self.objects.pop(effect.victim.id)
            done = dead.RemovalDone(subject=effect.subject, intent=effect.intent)
            self.node.tell("container_gc", "node", done)


@settings(max_examples=80, deadline=None)
@example([2, 3], {"max_per_container": -1, "max_containers": 2}, {"max_per_container": 2, "max_containers": 2})
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.fixed_dictionaries({"max_per_container": st.integers(-1, 3), "max_containers": st.integers(-1, 5)}),
    st.fixed_dictionaries({"max_per_container": st.integers(-1, 3), "max_containers": st.integers(-1, 5)}),
)
def test_limits_of_dead_containers(counts: list[int], before: Mapping[str, int], after: Mapping[str, int]) -> None:
    def run(limits: Mapping[str, int]) -> RecordedNode:
        found = Dead(container_gc.Policy(**limits))
        for number, count in enumerate(counts):
            found.objects |= {one.id: one for one in _dead(count, f"c{number}")}
            found.look()
            found.node.passes(MINUTE)
        return found.node

    answer = ask(
        run(before),
        f"maximum-dead-containers-per-container={after['max_per_container']}",
        f"maximum-dead-containers={after['max_containers']}",
    )
    live = [one for one in lived(run(after)) if one.startswith(("run: ", "removed "))]
    assert answer.exact == live[: len(answer.exact)]
    if answer.runs.first is None:
        assert answer.exact == live
    assert answer.counted("containers removed")[1] == len([one for one in live if one.startswith("removed ")])
