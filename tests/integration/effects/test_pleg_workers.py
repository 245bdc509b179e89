"""pleg's standing workers: on a real engine that dies and returns, and on the fake where a single call must hang."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, cast

import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime, Program
from chronolet.kernel.kind import Effect, Job
from chronolet.pleg import effects, relisting, signals, wanted
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal, Runtime, SandboxSpec
from tests.integration.effects.support import (
    NODE,
    OBEDIENT,
    POD,
    RUN,
    UID,
    Context,
    World,
    container,
    pod,
    start_container,
)
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.images import PAUSE
from tests.support.scratch import HANG_SECONDS, wait_until

FOLLOW = wanted.FollowRuntime(subject="stream", intent="follow")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing waits for all inspects that it began."""
    monkeypatch.setattr(relisting, "PATIENCE_SECONDS", HANG_SECONDS)


def relist(*known: str) -> wanted.Relist:
    return wanted.Relist(subject="relist", intent="relist", known=known)


class Standing:
    """Standing effects at work, and what they sent."""

    def __init__(self, jobs: dict[type[Effect], Job]) -> None:
        self.context = Context(entity="node", cause="")
        self._jobs = jobs
        self._threads: list[threading.Thread] = []

    def start(self, effect: Effect) -> None:
        run = self._jobs[type(effect)].run
        thread = threading.Thread(target=run, args=(effect, self.context))
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        self.context.cancelled.set()
        for thread in self._threads:
            thread.join(HANG_SECONDS)
            assert not thread.is_alive(), "a cancelled worker goes on"

    def sent(self, kind: type[Any]) -> list[Any]:
        return [signal for signal, _ in list(self.context.sent) if isinstance(signal, kind)]

    def noticed(self, container_id: str) -> list[str]:
        return [one.action for one in self.sent(signals.Noticed) if one.id == container_id]

    def seen(self, container_id: str) -> list[str]:
        return [
            one.state for all_seen in self.sent(signals.Relisted) for one in all_seen.seen if one.id == container_id
        ]


@contextmanager
def standing(runtime: Runtime, *wishes: Effect, steady_seconds: float = 3600) -> Iterator[Standing]:
    """The effects run, one after the other has begun; a listing comes only when somebody asks for it."""
    work = Standing(
        dict(effects.jobs(runtime, NODE, steady_seconds=steady_seconds, run=lambda: RUN, endpoint="unix:///here"))
    )
    try:
        for wish in wishes:
            work.start(wish)
            if isinstance(wish, wanted.FollowRuntime):
                wait_until(lambda: bool(work.sent(signals.StreamOpened)), "the stream")
        yield work
    finally:
        work.stop()


def wait_for_end(world: World, container_id: str) -> None:
    """Until the engine lists it as dead: it tells whoever waits for an end a moment before."""
    wait_until(lambda: {one.id: one.state for one in world.ours()}[container_id] == "exited", "its end, by the list")


def test_a_life_is_noticed_with_its_cause(world: World) -> None:
    manifest = pod(container("-c", "exit 3"))
    with standing(world.runtime, FOLLOW) as work:
        sandbox = world.sandbox(manifest)
        up = world.run(start_container(manifest, sandbox.id, attempt=2), Context(cause="55-5"))
        wait_until(lambda: work.noticed(up.id) == ["create", "start", "die"], "the death")
        died, cause = next((one, cause) for one, cause in work.context.sent if getattr(one, "action", "") == "die")
        assert (died.pod, died.uid, died.container, died.attempt, died.exit_code) == (POD, UID, "app", 2, 3)
        assert cause == "55-5"
        assert died.at >= up.started_at
        assert work.noticed(sandbox.id) == ["create", "start"]
        assert {one.container for one in work.sent(signals.Noticed)} == {"POD", "app"}
    opened = work.sent(signals.StreamOpened)[0]
    assert opened.server.startswith("docker ")
    assert (opened.endpoint, opened.engine_id) == ("unix:///here", world.runtime.engine().id)
    assert opened.engine_id
    assert work.sent(signals.StreamBroken) == []


def test_a_cause_in_a_log_that_was_lost_is_none(world: World) -> None:
    owner = labels.Owner(pod=POD, uid=UID, container="POD", attempt=0, cause="55-5", run="lost")
    spec = SandboxSpec(name="of-a-lost-log", labels=labels.written(NODE, owner), image=PAUSE.reference, hostname="x")
    with standing(world.runtime, FOLLOW) as work:
        sandbox = world.runtime.create_sandbox(spec)
        wait_until(lambda: work.noticed(sandbox) == ["create"], "the notice")
        assert [cause for one, cause in work.context.sent if isinstance(one, signals.Noticed)] == [""]


def test_what_bears_our_node_and_no_pod_is_passed_over(world: World) -> None:
    stranger = world.runtime.create_sandbox(
        SandboxSpec(name="stranger", labels=labels.of_node(NODE), image=PAUSE.reference, hostname="x")
    )
    with standing(world.runtime, FOLLOW, relist()) as work:
        world.runtime.start(stranger)
        sandbox = world.sandbox(pod(container(*OBEDIENT)))
        wait_until(lambda: work.noticed(sandbox.id) == ["create", "start"], "the notices of ours")
        assert work.noticed(stranger) == []
        assert work.seen(stranger) == []


def test_the_first_listing_tells_everything_in_detail_and_the_next_only_what_changed(world: World) -> None:
    manifest = pod(container("-c", "exit 3"))
    sandbox = world.sandbox(manifest)
    up = world.run(start_container(manifest, sandbox.id))
    wait_for_end(world, up.id)
    with relisting.Relisting(world.runtime, NODE) as listing:
        first = listing.relisted()
        assert first.count == 2
        told = {one.container: one for one in first.seen}
        assert (told["POD"].state, told["POD"].id, told["POD"].started_at) == (
            "running",
            sandbox.id,
            sandbox.started_at,
        )
        dead = told["app"]
        assert (dead.state, dead.exit_code, dead.reason, dead.detailed) == ("exited", 3, "Error", True)
        # Docker takes the two from different clocks: the end may come a millisecond before the start.
        assert dead.finished_at > dead.started_at - 10 > 0
        assert listing.relisted().seen == ()
        world.runtime.kill(sandbox.id)
        wait_for_end(world, sandbox.id)
        world.runtime.remove(up.id)
        second = {one.id: one for one in listing.relisted().seen}
        assert {key: one.state for key, one in second.items()} == {sandbox.id: "exited", up.id: "removed"}
        assert (second[up.id].pod, second[up.id].container) == (POD, "app")
        assert listing.relisted().count == 1


def test_what_only_the_log_knows_is_confirmed_gone(world: World) -> None:
    sandbox = world.sandbox(pod(container(*OBEDIENT)))
    lost = "f" * 64
    with relisting.Relisting(world.runtime, NODE, known=(sandbox.id, lost)) as listing:
        seen = {one.id: one.state for one in listing.relisted().seen}
    assert seen == {sandbox.id: "running", lost: "removed"}


def test_what_does_not_run_is_told_early_where_everything_is_told_anew(world: World) -> None:
    manifest = pod(container("-c", "exit 3"))
    sandbox = world.sandbox(manifest)
    up = world.run(start_container(manifest, sandbox.id))
    wait_for_end(world, up.id)
    lost = "f" * 64
    early: list[signals.Relisted] = []
    with relisting.Relisting(world.runtime, NODE, known=(sandbox.id, lost)) as listing:
        late = listing.relisted(early.append)
        assert [({one.id: one.state for one in each.seen}, each.count, each.partial) for each in (*early, late)] == [
            ({up.id: "exited", lost: "removed"}, 2, True),
            ({sandbox.id: "running"}, 2, False),
        ]
        assert listing.relisted(early.append).seen == ()
        assert len(early) == 1, "nothing is told early where only changes are told"
        listing.distrust()
        assert [one.id for one in listing.relisted(early.append).seen] == [sandbox.id]
        assert [one.id for one in early[1].seen] == [up.id]


def test_a_listing_begun_ahead_is_the_first_and_told_as_it_is_by_now() -> None:
    fake = FakeRuntime(images=["pause"])
    counting = _Counting(fake)
    stays, goes = _fake_sandbox(fake, "1"), _fake_sandbox(fake, "2")
    ahead = relisting.Ahead(cast("Runtime", counting), NODE)
    ahead.begin()
    listed = ahead.take()
    assert listed is not None
    assert len(listed.found.result(HANG_SECONDS)) == 2
    fake.remove(goes)
    with relisting.Relisting(cast("Runtime", counting), NODE) as listing:
        found = listing.relisted(ahead=listed)
        assert (found.began_at, {one.id: one.state for one in found.seen}) == (
            listed.began_at,
            {stays: "running", goes: "removed"},
        )
        assert counting.calls["list"] == 1
        assert ahead.take() is None
        assert listing.relisted(ahead=ahead.take()).count == 1
    assert counting.calls["list"] == 2


def test_a_listing_begun_ahead_that_has_become_old_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = relisting.Ahead(FakeRuntime(), NODE)
    ahead.begin()
    begun = ahead._listed
    assert begun is not None
    begun.found.result(HANG_SECONDS)
    monkeypatch.setattr(relisting, "AHEAD_SECONDS", 0.0)
    assert ahead.take() is None


def test_a_listing_begun_ahead_that_is_still_under_way_is_waited_for_however_old_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relisting, "AHEAD_SECONDS", 0.0)
    answered = threading.Event()

    class Slow(FakeRuntime):
        def list(self, labels: Any) -> Any:
            assert answered.wait(HANG_SECONDS)
            return super().list(labels)

    ahead = relisting.Ahead(Slow(), NODE)
    ahead.begin()
    listed = ahead.take()
    assert listed is not None
    answered.set()
    assert list(listed.found.result(HANG_SECONDS)) == []


def test_a_listing_begun_ahead_that_is_refused_is_made_anew_at_once() -> None:
    fake = FakeRuntime(images=["pause"])
    sandbox = _fake_sandbox(fake, "1")
    fake.refuse("list", Refusal("unavailable", "not yet"))
    ahead = relisting.Ahead(fake, NODE)
    ahead.begin()
    context = Context(entity="node", cause="")
    job = effects.jobs(fake, NODE, steady_seconds=3600, ahead=ahead)[wanted.Relist]
    wish = wanted.Relist(subject="relist", intent="relist", known=(), period_seconds=1)
    thread = threading.Thread(target=job.run, args=(wish, context))
    thread.start()
    wait_until(lambda: len(context.sent) > 0, "a listing")
    context.cancelled.set()
    thread.join(HANG_SECONDS)
    found, _ = context.sent[0]
    assert [one.id for one in found.seen] == [sandbox]


def test_an_engine_that_dies_is_told_and_followed_again_and_its_dead_are_found(
    world: World, docker_engine: PrivateDocker
) -> None:
    manifest = pod(container(*OBEDIENT))
    sandbox = world.sandbox(manifest)
    up = world.run(start_container(manifest, sandbox.id))
    pid = world.runtime.inspect(up.id).pid
    with standing(world.runtime, FOLLOW, relist()) as work:
        wait_until(lambda: work.seen(up.id) == ["running"], "the first listing")
        docker_engine.kill9()
        try:
            wait_until(lambda: bool(work.sent(signals.StreamBroken)), "the broken stream")
            wait_until(lambda: bool(work.sent(signals.RelistFailed)), "a listing that failed")
            # Nobody notices this death: there is no engine.
            _kill(pid)
        finally:
            docker_engine.start()
        wait_until(lambda: "exited" in work.seen(up.id), "the death in a listing")
        wait_until(lambda: len(work.sent(signals.StreamOpened)) == 2, "the stream, again")
        wait_until(lambda: work.seen(sandbox.id).count("running") >= 2, "everything told anew")
    dead = next(one for all_seen in work.sent(signals.Relisted) for one in all_seen.seen if one.state == "exited")
    assert (dead.id, dead.exit_code) == (up.id, 137)


def _kill(pid: int) -> None:

    os.kill(pid, signal.SIGKILL)


def test_a_lost_notice_is_found_by_the_listing() -> None:
    fake = FakeRuntime(images=["pause"], programs={(): Program()})
    sandbox = _fake_sandbox(fake, "1")
    with standing(fake, FOLLOW, relist(), steady_seconds=0.05) as work:
        wait_until(lambda: work.seen(sandbox) == ["running"], "the first listing")
        fake.silent = True
        fake.end(sandbox, 7)
        wait_until(lambda: work.seen(sandbox) == ["running", "exited"], "the death")
        assert "die" not in work.noticed(sandbox)


@pytest.mark.parametrize("listed_before", [False, True])
def test_what_only_notices_told_of_is_confirmed_gone(listed_before: bool) -> None:
    """It came after one listing and was removed before the next, and the engine ended before it said so."""
    fake = FakeRuntime(images=["pause"], programs={(): Program()})
    wishes = (FOLLOW, relist()) if listed_before else (FOLLOW,)
    with standing(fake, *wishes) as work:
        if listed_before:
            wait_until(lambda: len(work.sent(signals.Relisted)) > 0, "the first listing")
        sandbox = _fake_sandbox(fake, "1")
        fake.end(sandbox, 0)
        wait_until(lambda: work.noticed(sandbox) == ["create", "start", "die"], "the death")
        fake.silent = True
        fake.remove(sandbox)
        fake.silent = False
        if listed_before:
            fake.go_down()
            wait_until(lambda: bool(work.sent(signals.StreamBroken)), "the broken stream")
            fake.come_up()
        else:
            work.start(relist())
        wait_until(lambda: bool(work.seen(sandbox)), "that it is gone")
        # Once more where the stream was opened again meanwhile, which repeats its last notices.
        assert set(work.seen(sandbox)) == {"removed"}
        assert "destroy" not in work.noticed(sandbox)


def test_what_was_told_gone_and_noticed_after_it_is_confirmed_once_more() -> None:
    """The notice of a death may come behind the listing that found the container gone."""
    fake = FakeRuntime(images=["pause"])
    sandbox = _fake_sandbox(fake, "1")
    with relisting.Relisting(fake, NODE) as listing:
        assert [one.state for one in listing.relisted().seen] == ["running"]
        fake.remove(sandbox)
        assert [one.state for one in listing.relisted().seen] == ["removed"]
        assert listing.relisted().seen == ()
        listing.look_up([sandbox])
        assert [(one.id, one.state) for one in listing.relisted().seen] == [(sandbox, "removed")]
        assert listing.relisted().seen == ()


def test_what_was_noticed_and_is_listed_is_looked_at_once() -> None:
    fake = FakeRuntime(images=["pause"])
    counting = _Counting(fake)
    sandbox = _fake_sandbox(fake, "1")
    with relisting.Relisting(cast("Runtime", counting), NODE) as listing:
        for _ in range(3):
            listing.look_up([sandbox])
            listing.relisted()
    assert counting.calls == {"list": 3, "inspect": 1}


def test_the_listing_is_asked_for_as_soon_as_the_stream_stands() -> None:
    fake = FakeRuntime(images=["pause"])
    fake.go_down()
    work = Standing(dict(effects.jobs(fake, NODE, steady_seconds=3600)))
    try:
        # The listing may look every hour only, with or without a stream: whatever comes early was asked for.
        work.start(wanted.Relist(subject="relist", intent="relist", period_seconds=3600))
        wait_until(lambda: len(work.sent(signals.RelistFailed)) == 1, "the first listing")
        work.start(FOLLOW)
        wait_until(lambda: len(work.sent(signals.StreamBroken)) == 1, "the refused stream")
        # A refused stream asks for a listing, too: one that came late would be taken for the one that is meant.
        wait_until(lambda: len(work.sent(signals.RelistFailed)) > 1, "the listing that the refused stream asked for")
        fake.come_up()
        wait_until(lambda: bool(work.sent(signals.Relisted)), "the listing that was asked for")
        assert len(work.sent(signals.StreamBroken)) == 1, "the same trouble was told twice"
    finally:
        work.stop()


class _Stuck(FakeRuntime):
    """Its inspects of one container hang until they are let go."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.stuck = ""
        self.let_go = threading.Event()
        self.asked = 0

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        if container_id_or_name == self.stuck:
            self.asked += 1
            assert self.let_go.wait(HANG_SECONDS)
            raise Refusal("timeout", "no answer in time")
        return super().inspect(container_id_or_name, timeout_seconds=timeout_seconds)


def wait_for_all_but_one(running: Collection[Future[Any]], seconds: float) -> None:
    """As listings wait, and on where threads do not come to run: for all but the one that hangs."""
    wait(running, seconds)
    wait_until(lambda: sum(not one.done() for one in running) <= 1, "the other inspects")


def test_a_container_whose_inspect_hangs_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relisting, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(relisting, "wait", wait_for_all_but_one)
    fake = _Stuck(images=["pause"])
    stuck, other = _fake_sandbox(fake, "1"), _fake_sandbox(fake, "2")
    fake.stuck = stuck
    with relisting.Relisting(fake, NODE) as listing:
        first = listing.relisted()
        assert ([one.id for one in first.seen], first.count) == ([other], 2)
        wait_until(lambda: fake.asked > 0, "the inspect that hangs")
        fake.end(other, 0)
        second = listing.relisted()
        assert [(one.id, one.state) for one in second.seen] == [(other, "exited")]
        assert [(one.pod, one.uid) for one in second.unread] == [("default/1", "1")]
        assert fake.asked == 1, "it was still asked for the first time"
        fake.stuck = ""
        fake.let_go.set()
        wait_until(lambda: [one.id for one in listing.relisted().seen] == [stuck], "the one that hung")


def _fake_sandbox(fake: FakeRuntime, uid: str) -> str:
    owner = labels.Owner(pod=f"default/{uid}", uid=uid, container="POD", attempt=0)
    spec = SandboxSpec(name=f"sandbox-{uid}", labels=labels.written(NODE, owner), image="pause", hostname="x")
    created = fake.create_sandbox(spec)
    fake.start(created)
    return created


class _Counting:
    """Counts the calls of a runtime by name."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._runtime, name)


def test_a_listing_in_which_nothing_changed_inspects_nothing(world: World) -> None:
    for number in range(60):
        owner = labels.Owner(pod=f"default/p{number}", uid=f"u{number}", container="POD", attempt=0, cause="1-1")
        world.runtime.create_sandbox(
            SandboxSpec(name=f"p-{number}", labels=labels.written(NODE, owner), image=PAUSE.reference, hostname="x")
        )
    counting = _Counting(world.runtime)
    with relisting.Relisting(cast("Runtime", counting), NODE) as listing:
        assert len(listing.relisted().seen) == 60
        assert counting.calls["inspect"] == 60
        counting.calls.clear()
        listing.relisted()
    assert counting.calls == {"list": 1}


class _Slow(FakeRuntime):
    """The inspect of one container answers what was true when it was asked, but only when it is let go."""

    def __init__(self) -> None:
        super().__init__(images=["pause"])
        self.slow = ""
        self.asked = threading.Event()
        self.let_go = threading.Event()

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        found = super().inspect(container_id_or_name, timeout_seconds=timeout_seconds)
        if container_id_or_name == self.slow:
            self.asked.set()
            assert self.let_go.wait(HANG_SECONDS)
        return found


def test_what_a_listing_saw_before_the_end_is_not_told_after_it() -> None:
    fake = _Slow()
    fake.slow = _fake_sandbox(fake, "1")
    fake.end(fake.slow, 0)
    with standing(fake, FOLLOW, relist()) as work:
        assert fake.asked.wait(HANG_SECONDS)
        fake.remove(fake.slow)
        wait_until(lambda: work.noticed(fake.slow)[-1:] == ["destroy"], "the notice of the end")
        fake.let_go.set()
        wait_until(lambda: bool(work.sent(signals.Relisted)), "the listing")
        assert work.sent(signals.Relisted)[0].count == 1
        assert work.seen(fake.slow) == []
