"""The two standing workers of pleg: on a real engine that crashes and restarts, and on the fake runtime."""

import os
import signal
import threading

import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime, Program
from chronolet.pleg import effects, signals, wanted
from chronolet.pleg.workers.listings import Ahead
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal, SandboxSpec
from tests.integration.effects.pleg.support import (
    FOLLOW,
    Standing,
    fake_sandbox,
    relist,
    standing,
)
from tests.integration.effects.support import (
    NODE,
    OBEDIENT,
    POD,
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


def test_notices_of_a_container_are_sent_with_its_cause(world: World) -> None:
    manifest = pod(container("-c", "exit 3"))
    with standing(world.runtime, FOLLOW) as work:
        sandbox = world.sandbox(manifest)
        up = world.run(start_container(manifest, sandbox.id, attempt=2), Context(cause="55-5"))
        wait_until(lambda: work.noticed(up.id) == ["running", "exited"], "the death")
        died, cause = next((one, cause) for one, cause in work.context.sent if getattr(one, "state", "") == "exited")
        assert (died.pod, died.uid, died.container, died.attempt, died.exit_code) == (POD, UID, "app", 2, 3)
        assert cause == "55-5"
        assert died.finished_at >= up.started_at
        assert work.noticed(sandbox.id) == ["running"]
        assert {one.container for one in work.sent(signals.ContainerObserved)} == {"POD", "app"}
    opened = work.sent(signals.StreamOpened)[0]
    assert opened.server.startswith("docker ")
    assert (opened.endpoint, opened.engine_id) == ("unix:///here", world.runtime.engine().id)
    assert opened.engine_id
    assert work.sent(signals.StreamBroken) == []


def test_a_death_is_sent_with_the_signals_of_its_run_alone(world: World) -> None:
    manifest = pod(container("-c", "trap '' HUP; while true; do sleep 1; done"))
    with standing(world.runtime, FOLLOW) as work:
        up = world.run(start_container(manifest, world.sandbox(manifest).id), Context(cause="55-5"))
        for signal in ("HUP", "KILL"):
            world.runtime.kill(up.id, signal)
        wait_until(lambda: work.noticed(up.id)[-1] == "exited", "the death")
        world.runtime.start(up.id)
        wait_until(lambda: work.noticed(up.id)[-1] == "running", "the second run")
        world.runtime.kill(up.id)
        wait_until(lambda: work.noticed(up.id)[-1] == "exited", "the second death")
    deaths = [one.sent for one in work.sent(signals.ContainerObserved) if one.state == "exited" and one.id == up.id]
    assert deaths == [(1, 9), (9,)]


def test_a_cause_in_a_lost_log_is_dropped(world: World) -> None:
    owner = labels.Owner(pod=POD, uid=UID, container="POD", attempt=0, cause="55-5", run="lost")
    spec = SandboxSpec(name="of-a-lost-log", labels=labels.written(NODE, owner), image=PAUSE.reference, hostname="x")
    with standing(world.runtime, FOLLOW) as work:
        sandbox = world.runtime.create_sandbox(spec)
        world.runtime.start(sandbox)
        wait_until(lambda: work.noticed(sandbox) == ["running"], "the notice")
        assert [cause for one, cause in work.context.sent if isinstance(one, signals.ContainerObserved)] == [""]


def test_a_container_with_our_node_label_and_no_pod_is_ignored(world: World) -> None:
    stranger = world.runtime.create_sandbox(
        SandboxSpec(name="stranger", labels=labels.of_node(NODE), image=PAUSE.reference, hostname="x")
    )
    with standing(world.runtime, FOLLOW, relist()) as work:
        world.runtime.start(stranger)
        sandbox = world.sandbox(pod(container(*OBEDIENT)))
        wait_until(lambda: work.noticed(sandbox.id) == ["running"], "the notice of ours")
        assert work.noticed(stranger) == []
        assert work.listed(stranger) == []


def test_an_early_listing_that_failed_is_repeated_immediately() -> None:
    fake = FakeRuntime(images=["pause"])
    sandbox = fake_sandbox(fake, "1")
    fake.refuse("list", Refusal("unavailable", "not yet"))
    ahead = Ahead(fake, NODE)
    ahead.begin()
    context = Context(entity="node", cause="")
    job = effects.jobs(fake, NODE, steady_seconds=3600, ahead=ahead, patience_seconds=HANG_SECONDS)[wanted.Relist]
    effect = wanted.Relist(subject="relist", intent="relist", known=(), period_seconds=1)
    thread = threading.Thread(target=job.run, args=(effect, context))
    thread.start()
    wait_until(lambda: len(context.sent) > 0, "a listing")
    context.cancelled.set()
    thread.join(HANG_SECONDS)
    found, _ = context.sent[0]
    assert [one.id for one in found.observed] == [sandbox]


def test_a_crash_of_the_engine_is_reported_and_the_next_listing_finds_the_dead(
    world: World, docker_engine: PrivateDocker
) -> None:
    manifest = pod(container(*OBEDIENT))
    sandbox = world.sandbox(manifest)
    up = world.run(start_container(manifest, sandbox.id))
    pid = world.runtime.inspect(up.id).pid
    with standing(world.runtime, FOLLOW, relist()) as work:
        wait_until(lambda: work.listed(up.id) == ["running"], "the first listing")
        docker_engine.kill9()
        try:
            wait_until(lambda: bool(work.sent(signals.StreamBroken)), "the broken stream")
            wait_until(lambda: bool(work.sent(signals.RelistFailed)), "a listing that failed")
            # No notice reports this exit, because the engine is down.
            _kill(pid)
        finally:
            docker_engine.start()
        wait_until(lambda: "exited" in work.listed(up.id), "the death in a listing")
        wait_until(lambda: len(work.sent(signals.StreamOpened)) == 2, "the reopened stream")
        wait_until(lambda: work.listed(sandbox.id).count("running") >= 2, "the next full listing")
    dead = next(one for listing in work.sent(signals.Relisted) for one in listing.observed if one.state == "exited")
    assert (dead.id, dead.exit_code) == (up.id, 137)


def _kill(pid: int) -> None:

    os.kill(pid, signal.SIGKILL)


def test_a_lost_notice_is_found_by_the_listing() -> None:
    fake = FakeRuntime(images=["pause"], programs={(): Program()})
    sandbox = fake_sandbox(fake, "1")
    with standing(fake, FOLLOW, relist(), steady_seconds=0.05) as work:
        wait_until(lambda: work.listed(sandbox) == ["running"], "the first listing")
        fake.silent = True
        fake.end(sandbox, 7)
        wait_until(lambda: work.listed(sandbox) == ["running", "exited"], "the death")
        assert "exited" not in work.noticed(sandbox)


@pytest.mark.parametrize("listed_before", [False, True])
def test_a_container_known_only_from_notices_is_confirmed_gone(listed_before: bool) -> None:
    """The container is created and removed before the first listing or between two listings, and the notice of its
    removal is lost.
    """
    fake = FakeRuntime(images=["pause"], programs={(): Program()})
    with standing(fake, *((FOLLOW, relist()) if listed_before else (FOLLOW,))) as work:
        if listed_before:
            wait_until(lambda: len(work.sent(signals.Relisted)) > 0, "the first listing")
        sandbox = fake_sandbox(fake, "1")
        fake.end(sandbox, 0)
        wait_until(lambda: work.noticed(sandbox) == ["running", "exited"], "the death")
        fake.silent = True
        fake.remove(sandbox)
        fake.silent = False
        if listed_before:
            fake.go_down()
            wait_until(lambda: bool(work.sent(signals.StreamBroken)), "the broken stream")
            fake.come_up()
        else:
            work.start(relist())
        wait_until(lambda: bool(work.listed(sandbox)), "the confirmation that it is gone")
        # The removal is confirmed again if the stream was reopened, because the stream then repeats its last notices.
        assert set(work.listed(sandbox)) == {"removed"}
        assert "removed" not in work.noticed(sandbox)


def test_the_opened_stream_triggers_a_listing() -> None:
    fake = FakeRuntime(images=["pause"])
    fake.go_down()
    work = Standing(dict(effects.jobs(fake, NODE, steady_seconds=3600, patience_seconds=HANG_SECONDS)))
    try:
        # Listings are an hour apart, with or without a stream, so an earlier listing must have been requested.
        work.start(wanted.Relist(subject="relist", intent="relist", period_seconds=3600))
        wait_until(lambda: len(work.sent(signals.RelistFailed)) == 1, "the first listing")
        work.start(FOLLOW)
        wait_until(lambda: len(work.sent(signals.StreamBroken)) == 1, "the refused stream")
        # A refused stream also requests a listing; wait for it, so that it is not mistaken for the one below.
        wait_until(lambda: len(work.sent(signals.RelistFailed)) > 1, "the listing that the refused stream requested")
        fake.come_up()
        wait_until(lambda: bool(work.sent(signals.Relisted)), "the requested listing")
        assert len(work.sent(signals.StreamBroken)) == 1, "the same failure was reported twice"
    finally:
        work.stop()


class _Slow(FakeRuntime):
    """A runtime in which the inspect of one container reads its state immediately, but returns only when released."""

    def __init__(self) -> None:
        super().__init__(images=["pause"])
        self.slow = ""
        self.inspecting = threading.Event()
        self.released = threading.Event()

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        found = super().inspect(container_id_or_name, timeout_seconds=timeout_seconds)
        if container_id_or_name == self.slow:
            self.inspecting.set()
            assert self.released.wait(HANG_SECONDS)
        return found


def test_an_observation_from_before_a_removal_is_not_sent_after_it() -> None:
    fake = _Slow()
    fake.slow = fake_sandbox(fake, "1")
    fake.end(fake.slow, 0)
    with standing(fake, FOLLOW, relist()) as work:
        assert fake.inspecting.wait(HANG_SECONDS)
        fake.remove(fake.slow)
        wait_until(lambda: work.noticed(fake.slow)[-1:] == ["removed"], "the notice of the end")
        fake.released.set()
        wait_until(lambda: bool(work.sent(signals.Relisted)), "the listing")
        assert work.sent(signals.Relisted)[0].count == 1
        assert work.listed(fake.slow) == []
