"""Simulates one node: the deciders of pod and pleg and their workers, on the in-memory runtime with a simulated clock.

Containers die, calls are refused and workers are killed, in any order. Nevertheless, no two attempts of a container run
concurrently, no hook's command begins twice, ordered steps keep their order (see `Watched`), an undisturbed pod
eventually runs, and a withdrawn pod leaves nothing behind.
"""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chronolet.adapters.cgroups import ContainerGroups
from chronolet.adapters.fakes.execs import Program
from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.adapters.http.requests import HttpRequests
from chronolet.adapters.machine.host import LinuxHost
from chronolet.adapters.state_folder.specs import SpecFiles
from chronolet.adapters.volumes import HostVolumes
from chronolet.kernel.kind import EffectFailed
from chronolet.pleg import decider as pleg_decider
from chronolet.pleg.workers.listings import Relisting
from chronolet.pod import effects
from chronolet.pod.workers.images.ensure import Pulls
from chronolet.ports.devices.cdi import NoCdi
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.registries import NoKeys
from chronolet.ports.runtime.runtime import Refusal
from chronolet_schemas import pleg
from chronolet_schemas.envelope import Signal
from chronolet_schemas.podspec import ExecAction, Lifecycle, LifecycleHandler
from tests.deciders.given import Scene
from tests.deciders.pod.life import T0, container, manifest
from tests.deciders.pod.watch import Watched

NODE = "sim"
REFUSED = ("create_exec", "inspect_exec", "create_sandbox", "create_container", "start", "inspect", "remove", "image")


class Killed(BaseException):
    """Raised where the worker's process is killed."""


class Context:
    """The context of an effect whose worker is killed at the `dies_at`-th point, counted from 1; 0: never."""

    entity = "default/web"
    cause = "1-1"

    def __init__(self, dies_at: int) -> None:
        self.cancelled = threading.Event()
        self.sent: list[Signal] = []
        self._left = dies_at

    def fence(self, _point: str) -> None:
        self._pass()

    def done(self, _point: str) -> None:
        self._pass()

    def send(self, signal: Signal, *, cause: str = "") -> None:
        self.sent.append(signal)

    def _pass(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise Killed


class World:
    """A node with one pod."""

    def __init__(self, root: Path) -> None:
        self.pod = Watched()
        self.begun: dict[str, tuple[str, bytes]] = {}
        self.pleg = Scene(pleg_decider.DECIDER)
        self.runtime = FakeRuntime(
            images=("pause", "busybox:1", "busybox:2"),
            now=lambda: self.pod.at,
            programs={
                one.exec.command: Program(exits=0, stdout=one.exec.command[0].encode()) for one in HOOKS if one.exec
            },
        )
        deps = effects.PodDependencies(
            runtime=self.runtime,
            volumes=HostVolumes(root),
            specs=SpecFiles(root),
            requests=HttpRequests(),
            host=LinuxHost(root),
            node=NODE,
            pause_image="pause",
            builtin=lambda _: None,
            pulls=Pulls(keyring=NoKeys()),
            cdi=NoCdi(),
            cgroups=ContainerGroups(),
        )
        self.jobs = effects.jobs(deps)
        self.listing = Relisting(self.runtime, NODE)

    def run(self, subject: str, dies_at: int = 0) -> None:
        """Run one effect. If its worker is killed, the effect has no result and runs again later."""
        effect = self.pod.effects[subject]
        context = Context(dies_at)
        try:
            answer = self.jobs[type(effect)].run(effect, context)
        except Killed:
            return
        except Refusal as refusal:
            to: dict[str, Any] = {"subject": subject, "intent": effect.intent}
            answer = EffectFailed(effect=type(effect).__name__, error=str(refusal), **to)
        for signal in context.sent:
            self.pod.when(signal)
        if answer is not None:
            self.pod.when(answer)

    def relist(self) -> None:
        """Relist the containers, and send the resulting events to the pod."""
        try:
            listed = self.listing.relisted()
        except Refusal:
            return
        for event in self.pleg.when(listed).events:
            if isinstance(event, pleg.ContainerStarted | pleg.ContainerDied) and self.pod.state is not None:
                self.pod.when(event)

    def settle(self) -> None:
        """Run all effects and timers until nothing changes any more."""
        self.runtime.come_up()
        for _ in range(200):
            self.pod.at += 1
            if self.pod.state is not None and self.pod.effects:
                self.run(min(self.pod.effects))
                continue
            before = self.pod.state
            self.relist()
            if self.pod.state is not None and self.pod.due is not None:
                self.pod.wake()
            elif before is self.pod.state:
                return
        raise AssertionError(f"it never settles: {self.pod.state}")

    def running(self) -> list[tuple[str, str]]:
        found = [one.labels for one in self.runtime.list(labels.of_node(NODE)) if one.state == "running"]
        owners = [labels.read(one) for one in found]
        return [(one.uid, one.container) for one in owners if one is not None]

    def hooks(self) -> Counter[tuple[str, bytes]]:
        """Return the number of commands begun for each hook of each container."""
        for key, one in self.runtime.execs.all.items():
            if one.started:
                self.begun[key] = (one.container_id, one.program.stdout)
        return Counter(self.begun.values())

    def vanish(self, container_id: str) -> None:
        """Remove a container by force, as a user might."""
        with suppress(Refusal):
            self.runtime.remove(container_id)

    def close(self) -> None:
        self.listing.__exit__(None, None, None)


AFTER = LifecycleHandler(exec=ExecAction(command=("after",)))
BEFORE = LifecycleHandler(exec=ExecAction(command=("before",)))
HOOKS = (AFTER, BEFORE)
HOOKED = manifest(
    container("app", lifecycle=Lifecycle(post_start=AFTER, pre_stop=BEFORE)),
    init_containers=(
        container("log", lifecycle=Lifecycle(post_start=AFTER, pre_stop=BEFORE), restart_policy="Always"),
    ),
)
MANIFESTS = (
    HOOKED,
    manifest(container("app"), container("log")),
    manifest(container("app", "busybox:2"), container("log")),
    manifest(container("app"), container("log"), restart_policy="OnFailure"),
)


def step(world: World, data: st.DataObject) -> None:
    life = world.pod
    life.at += data.draw(st.sampled_from((1, 1500, 20_000)))
    what = data.draw(
        st.sampled_from(("run", "run", "run", "kill", "relist", "wake", "end", "vanish", "refuse", "apply", "go"))
    )
    subjects = sorted(life.effects)
    there = sorted(one.id for one in world.runtime.list(labels.of_node(NODE)) if one.state == "running")
    if what in ("run", "kill") and subjects:
        world.run(data.draw(st.sampled_from(subjects)), data.draw(st.integers(1, 8)) if what == "kill" else 0)
    elif what == "relist":
        world.relist()
    elif what == "wake" and life.due is not None:
        life.wake()
    elif what == "end" and there:
        world.runtime.end(data.draw(st.sampled_from(there)), data.draw(st.sampled_from((0, 1, 137))))
    elif what == "vanish" and there:
        world.vanish(data.draw(st.sampled_from(there)))
    elif what == "refuse":
        world.runtime.refuse(data.draw(st.sampled_from(REFUSED)), Refusal("failed", "no"))
    elif what == "apply":
        life.apply(data.draw(st.sampled_from(MANIFESTS)), uid=data.draw(st.sampled_from(("u1", "u1", "u2"))))
    elif what == "go" and life.state is not None:
        life.withdraw(life.state.uid, data.draw(st.sampled_from((None, 0))))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_pod_survives_any_failures_and_leaves_nothing_behind(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as root:
        world = World(Path(root))
        try:
            world.pod.apply(data.draw(st.sampled_from(MANIFESTS)))
            for _ in range(data.draw(st.integers(0, 40))):
                step(world, data)
                assert max(Counter(world.running()).values(), default=0) <= 1
                assert max(world.hooks().values(), default=0) <= 1
            while world.pod.state is not None:
                world.pod.withdraw(world.pod.state.uid)
                world.settle()
            assert world.runtime.list(labels.of_node(NODE)) == []
            world.pod.at = max(world.pod.at, T0) + 1
            world.pod.apply(HOOKED, uid="u3")
            world.settle()
            assert sorted(world.running()) == [("u3", pleg.SANDBOX), ("u3", "app"), ("u3", "log")]
        finally:
            world.close()
