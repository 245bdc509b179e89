"""Single listings: of a real engine, and of the fake runtime where a call must hang or fail."""

import threading
from collections.abc import Collection
from concurrent.futures import Future, wait
from typing import Any, cast

import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.pleg import signals
from chronolet.pleg.workers import listings
from chronolet.pleg.workers.listings import Ahead, Relisting
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal, Runtime, SandboxSpec
from tests.integration.effects.pleg.support import Counting, fake_sandbox, patient_listings, wait_for_end
from tests.integration.effects.support import (
    NODE,
    OBEDIENT,
    POD,
    World,
    container,
    pod,
    start_container,
)
from tests.support.docker.images import PAUSE
from tests.support.scratch import HANG_SECONDS, wait_until


def test_the_first_listing_inspects_everything_and_the_next_only_changes(world: World) -> None:
    manifest = pod(container("-c", "exit 3"))
    sandbox = world.sandbox(manifest)
    up = world.run(start_container(manifest, sandbox.id))
    wait_for_end(world, up.id)
    with patient_listings(world.runtime) as listing:
        first = listing.relisted()
        assert first.count == 2
        by_name = {one.container: one for one in first.observed}
        assert (by_name["POD"].state, by_name["POD"].id, by_name["POD"].started_at) == (
            "running",
            sandbox.id,
            sandbox.started_at,
        )
        dead = by_name["app"]
        assert (dead.state, dead.exit_code, dead.reason, dead.detailed) == ("exited", 3, "Error", True)
        # Docker takes these times from different clocks: the exit may be a millisecond before the start.
        assert dead.finished_at > dead.started_at - 10 > 0
        assert listing.relisted().observed == ()
        world.runtime.kill(sandbox.id)
        wait_for_end(world, sandbox.id)
        world.runtime.remove(up.id)
        second = {one.id: one for one in listing.relisted().observed}
        assert {key: one.state for key, one in second.items()} == {sandbox.id: "exited", up.id: "removed"}
        assert (second[up.id].pod, second[up.id].container) == (POD, "app")
        assert listing.relisted().count == 1


def test_a_container_that_only_the_log_knows_is_confirmed_gone(world: World) -> None:
    sandbox = world.sandbox(pod(container(*OBEDIENT)))
    lost = "f" * 64
    with patient_listings(world.runtime, known=(sandbox.id, lost)) as listing:
        seen = {one.id: one.state for one in listing.relisted().observed}
    assert seen == {sandbox.id: "running", lost: "removed"}


def test_a_full_listing_reports_containers_that_do_not_run_first(world: World) -> None:
    manifest = pod(container("-c", "exit 3"))
    sandbox = world.sandbox(manifest)
    up = world.run(start_container(manifest, sandbox.id))
    wait_for_end(world, up.id)
    lost = "f" * 64
    early: list[signals.Relisted] = []
    with patient_listings(world.runtime, known=(sandbox.id, lost)) as listing:
        late = listing.relisted(early.append)
        assert [
            ({one.id: one.state for one in each.observed}, each.count, each.partial) for each in (*early, late)
        ] == [
            ({up.id: "exited", lost: "removed"}, 2, True),
            ({sandbox.id: "running"}, 2, False),
        ]
        assert listing.relisted(early.append).observed == ()
        assert len(early) == 1, "a listing of changes only has no early part"
        listing.distrust()
        assert [one.id for one in listing.relisted(early.append).observed] == [sandbox.id]
        assert [one.id for one in early[1].observed] == [up.id]


def test_an_early_listing_is_the_first_and_its_inspects_show_the_present_state() -> None:
    fake = FakeRuntime(images=["pause"])
    counting = Counting(fake)
    stays, goes = fake_sandbox(fake, "1"), fake_sandbox(fake, "2")
    ahead = Ahead(cast("Runtime", counting), NODE)
    ahead.begin()
    listed = ahead.take()
    assert listed is not None
    assert len(listed.found.result(HANG_SECONDS)) == 2
    fake.remove(goes)
    with patient_listings(cast("Runtime", counting)) as listing:
        found = listing.relisted(ahead=listed)
        assert (found.began_at, {one.id: one.state for one in found.observed}) == (
            listed.began_at,
            {stays: "running", goes: "removed"},
        )
        assert counting.calls["list"] == 1
        assert ahead.take() is None
        assert listing.relisted(ahead=ahead.take()).count == 1
    assert counting.calls["list"] == 2


def test_an_early_listing_that_is_too_old_is_repeated() -> None:
    ahead = Ahead(FakeRuntime(), NODE, maximum_age_seconds=0.0)
    ahead.begin()
    begun = ahead._listed
    assert begun is not None
    begun.found.result(HANG_SECONDS)
    assert ahead.take() is None


def test_an_early_listing_in_progress_is_awaited_at_any_age() -> None:
    may_answer = threading.Event()

    class Slow(FakeRuntime):
        def list(self, labels: Any) -> Any:
            assert may_answer.wait(HANG_SECONDS)
            return super().list(labels)

    ahead = Ahead(Slow(), NODE, maximum_age_seconds=0.0)
    ahead.begin()
    listed = ahead.take()
    assert listed is not None
    may_answer.set()
    assert list(listed.found.result(HANG_SECONDS)) == []


def test_a_removed_container_with_a_late_notice_is_confirmed_gone_again() -> None:
    """The notice of a container's exit may arrive after the listing that found the container gone."""
    fake = FakeRuntime(images=["pause"])
    sandbox = fake_sandbox(fake, "1")
    with patient_listings(fake) as listing:
        assert [one.state for one in listing.relisted().observed] == ["running"]
        fake.remove(sandbox)
        assert [one.state for one in listing.relisted().observed] == ["removed"]
        assert listing.relisted().observed == ()
        listing.look_up([sandbox])
        assert [(one.id, one.state) for one in listing.relisted().observed] == [(sandbox, "removed")]
        assert listing.relisted().observed == ()


def test_a_noticed_container_is_inspected_once() -> None:
    fake = FakeRuntime(images=["pause"])
    counting = Counting(fake)
    sandbox = fake_sandbox(fake, "1")
    with patient_listings(cast("Runtime", counting)) as listing:
        for _ in range(3):
            listing.look_up([sandbox])
            listing.relisted()
    assert counting.calls == {"list": 3, "inspect": 1}


class _Stuck(FakeRuntime):
    """A runtime in which inspects of one container hang until they are released, and are then refused."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.stuck = ""
        self.released = threading.Event()
        self.inspects = 0

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        if container_id_or_name == self.stuck:
            self.inspects += 1
            assert self.released.wait(HANG_SECONDS)
            raise Refusal("timeout", "no answer in time")
        return super().inspect(container_id_or_name, timeout_seconds=timeout_seconds)


def wait_for_all_but_one(running: Collection[Future[Any]], seconds: float) -> None:
    """Wait as a listing does, and then until all but one of the inspects are done, even if their threads run late."""
    wait(running, seconds)
    wait_until(lambda: sum(not one.done() for one in running) <= 1, "the other inspects")


def test_a_hanging_inspect_delays_no_other_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "wait", wait_for_all_but_one)
    fake = _Stuck(images=["pause"])
    stuck, other = fake_sandbox(fake, "1"), fake_sandbox(fake, "2")
    fake.stuck = stuck
    with Relisting(fake, NODE, patience_seconds=0.2) as listing:
        first = listing.relisted()
        assert ([one.id for one in first.observed], first.count) == ([other], 2)
        wait_until(lambda: fake.inspects > 0, "the inspect that hangs")
        fake.end(other, 0)
        second = listing.relisted()
        assert [(one.id, one.state) for one in second.observed] == [(other, "exited")]
        assert [(one.pod, one.uid) for one in second.unread] == [("default/1", "1")]
        assert fake.inspects == 1, "the first inspect is still pending"
        fake.stuck = ""
        fake.released.set()
        wait_until(lambda: [one.id for one in listing.relisted().observed] == [stuck], "the delayed inspect")


def test_a_listing_without_changes_inspects_nothing(world: World) -> None:
    for number in range(60):
        owner = labels.Owner(pod=f"default/p{number}", uid=f"u{number}", container="POD", attempt=0, cause="1-1")
        world.runtime.create_sandbox(
            SandboxSpec(name=f"p-{number}", labels=labels.written(NODE, owner), image=PAUSE.reference, hostname="x")
        )
    counting = Counting(world.runtime)
    with patient_listings(cast("Runtime", counting)) as listing:
        assert len(listing.relisted().observed) == 60
        assert counting.calls["inspect"] == 60
        counting.calls.clear()
        listing.relisted()
    assert counting.calls == {"list": 1}
