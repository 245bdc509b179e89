"""Functions that run pleg's workers and listings, for the tests."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.kernel.kind import Effect, Job
from chronolet.pleg import effects, signals, wanted
from chronolet.pleg.workers.listings import Relisting
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import Runtime, SandboxSpec
from tests.integration.effects.support import (
    NODE,
    RUN,
    Context,
    World,
)
from tests.support.scratch import HANG_SECONDS, wait_until

FOLLOW = wanted.FollowRuntime(subject="stream", intent="follow")


def relist(*known: str) -> wanted.Relist:
    return wanted.Relist(subject="relist", intent="relist", known=known)


class Standing:
    """Running standing effects, and the signals that they have sent."""

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
            assert not thread.is_alive(), "a cancelled worker continues"

    def sent(self, kind: type[Any]) -> list[Any]:
        return [signal for signal, _ in list(self.context.sent) if isinstance(signal, kind)]

    def noticed(self, container_id: str) -> list[str]:
        """Return the states of this container that notices reported."""
        return [one.state for one in self.sent(signals.ContainerObserved) if one.id == container_id]

    def listed(self, container_id: str) -> list[str]:
        """Return the states of this container that listings reported."""
        return [
            one.state for listing in self.sent(signals.Relisted) for one in listing.observed if one.id == container_id
        ]


@contextmanager
def standing(runtime: Runtime, *standing_effects: Effect, steady_seconds: float = 3600) -> Iterator[Standing]:
    """Run the effects, starting each after the previous one has begun. By default, listings are an hour apart."""
    jobs = effects.jobs(
        runtime,
        NODE,
        steady_seconds=steady_seconds,
        run=lambda: RUN,
        endpoint="unix:///here",
        patience_seconds=HANG_SECONDS,
    )
    work = Standing(dict(jobs))
    try:
        for effect in standing_effects:
            work.start(effect)
            if isinstance(effect, wanted.FollowRuntime):
                wait_until(lambda: bool(work.sent(signals.StreamOpened)), "the stream")
        yield work
    finally:
        work.stop()


def wait_for_end(world: World, container_id: str) -> None:
    """Wait until the engine lists the container as exited; the engine's wait call returns a moment earlier."""
    wait_until(
        lambda: {one.id: one.state for one in world.ours()}[container_id] == "exited", "a listing that shows its end"
    )


def patient_listings(runtime: Runtime, known: Iterable[str] = ()) -> Relisting:
    """Return a Relisting whose listings wait for all inspects that they begin."""
    return Relisting(runtime, NODE, known, patience_seconds=HANG_SECONDS)


def fake_sandbox(fake: FakeRuntime, uid: str) -> str:
    owner = labels.Owner(pod=f"default/{uid}", uid=uid, container="POD", attempt=0)
    spec = SandboxSpec(name=f"sandbox-{uid}", labels=labels.written(NODE, owner), image="pause", hostname="x")
    created = fake.create_sandbox(spec)
    fake.start(created)
    return created


class Counting:
    """A runtime wrapper that counts calls by name."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._runtime, name)
