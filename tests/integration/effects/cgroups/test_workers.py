"""The standing workers of qos on a tree of files: kills at any point, changes by hand, refusals."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from chronolet.adapters.cgroups import KernelOfFiles, LinuxCgroups
from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.adapters.machine.host import LinuxHost
from chronolet.adapters.machine.kernel_log import KernelLog
from chronolet.ports.machine.cgroups import Cgroups
from chronolet.ports.machine.kernel_log import Kills, NoKills
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import Engine, Refusal, SandboxSpec
from chronolet.qos import effects, signals, wanted
from chronolet.qos.sharing import Sharing
from chronolet.qos.state import Share, State
from chronolet.qos.tree import wanted as wanted_tree
from chronolet.rules.resources.cgroups import Path as CgroupPath
from chronolet_schemas.qos import Change
from chronolet_schemas.resources import PodNeeds
from tests.deciders.qos.nodes import GIB, need, node
from tests.integration.effects.support import Context, Killed
from tests.support.scratch import HANG_SECONDS, wait_until

NAME = "n1"
ROOT = ("kubepods",)


class World:
    """A machine simulated by files, on which tests run qos' workers: new ones, as after a kill, or one that remembers
    its earlier passes.
    """

    def __init__(self, folder: Path, version: int) -> None:
        self.version = version
        self.kernel = KernelOfFiles(folder, version, ("cpu", "memory", "pids"))
        self.runtime = FakeRuntime(images=("pause",))
        self.operations: list[str] = []
        self.cgroups: Cgroups = self.kernel
        self.kills: Kills = NoKills()
        self.above: CgroupPath = ()

    @property
    def root(self) -> CgroupPath:
        return (*self.above, *ROOT)

    def deps(self, **sharing: Any) -> effects.QosDependencies:
        return effects.QosDependencies(
            sharing=Sharing(name=NAME, above=self.above, **sharing),
            cgroups=self.cgroups,
            runtime=self.runtime,
            host=LinuxHost(self.kernel.folder),
            kills=self.kills,
            observe=lambda operation, _: self.operations.append(operation),
        )

    def tree(self, *needs: PodNeeds, revision: int = 1, settled: bool = False) -> wanted.KeepTree:
        found = node(version=self.version, root=self.root, memory_reserved_percent=100)
        state = State(node=found)
        for number, one in enumerate(needs):
            share = Share(pod=f"default/p{number}", needs=one, phase="ready")
            state = State(node=found, shares=state.shares.set(f"u{number}", share))
        tree = tuple(wanted_tree(state))
        return wanted.KeepTree(
            subject="tree",
            intent=f"keep/{revision}",
            revision=revision,
            driver="cgroupfs",
            root=self.root,
            tree=tree,
            settled=frozenset(one.path for one in tree) if settled else frozenset(),
        )

    def once(self, effect: wanted.KeepTree, context: Context | None = None) -> signals.TreeKept:
        """Run a new worker until it is idle, and return what it reported."""
        return self.again(effects.TreeKeeper(self.deps()), effect, context)

    def again(
        self, keeping: effects.TreeKeeper, effect: wanted.KeepTree, context: Context | None = None
    ) -> signals.TreeKept:
        """Run a worker that remembers its earlier passes until it is idle, and return what it reported."""
        context = context or Context(entity="node", cause="")
        sent = sent_by(lambda: keeping.keep(effect, context), context)
        assert {one.revision for one in sent} == {effect.revision}
        return signals.TreeKept(
            revision=effect.revision,
            restored=[restored for one in sent for restored in one.restored],
            removed=[removed for one in sent for removed in one.removed],
            failed=sent[-1].failed,
        )

    def file(self, *names: str) -> Path:
        above = [] if self.version == 2 else [names[-1].split(".")[0]]
        return self.kernel.folder.joinpath(*above, *names)

    def steps(self, effect: wanted.KeepTree) -> int:
        tree = self.cgroups.tree("cgroupfs")
        assert tree is not None
        tree.claim(self.root, NAME)
        return sum(len(tree.missing(one)) for one in effect.tree)


class Patience(threading.Event):
    """An event that detects when the worker waits for its next pass."""

    idle = False

    def wait(self, timeout: float | None = None) -> bool:
        self.idle = self.idle or timeout is None or timeout > 0.5
        return super().wait(timeout)


def sent_by(run: Callable[[], None], context: Context) -> list[Any]:
    """Run a standing worker until it is idle, then cancel it; return the signals that it sent. Raises the worker's
    exception.
    """
    raised: list[BaseException] = []
    patience = context.cancelled = Patience()

    def work() -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - raised in the test
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: patience.idle or bool(raised), "an idle worker")
    finally:
        context.cancelled.set()
        thread.join(HANG_SECONDS)
    assert not thread.is_alive()
    if raised:
        raise raised[0]
    return [signal for signal, _ in context.sent]


@pytest.fixture(params=[1, 2])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path / "cgroup", request.param)


PODS = (need("Guaranteed", memory=GIB), need("Burstable", cpu_limit_milli=900), need("BestEffort"))


def test_the_tree_is_created_once(world: World) -> None:
    effect = world.tree(*PODS)
    assert world.once(effect) == signals.TreeKept(revision=1, restored=[], removed=[])
    assert world.steps(effect) == 0
    assert world.operations == ["create"] * 6
    writes = world.kernel.writes
    assert world.once(effect) == signals.TreeKept(revision=1, restored=[], removed=[])
    assert (world.kernel.writes, len(world.operations)) == (writes, 6)


def test_a_worker_killed_at_any_point_is_completed_by_the_next(world: World, tmp_path: Path) -> None:
    """Unowned cgroups are also removed."""
    points = 0
    for dies_at in range(1, 200):
        here = World(tmp_path / str(dies_at), world.version)
        here.once(here.tree(*PODS))
        effect = here.tree(need("Guaranteed", cpu=700), revision=2)
        context = Context(entity="node", cause="", dies_at=dies_at)
        try:
            here.once(effect, context)
        except Killed:
            points += 1
        assert here.once(effect).failed == ()
        assert here.steps(effect) == 0
        tree = here.kernel.tree("cgroupfs")
        assert tree is not None
        assert tree.pods(ROOT) == (("kubepods", "podu0"),)
        if len(context.points) < dies_at:
            break
    assert points > 8


def test_the_first_pass_killed_at_any_point_is_completed_by_the_next(world: World, tmp_path: Path) -> None:
    points = 0
    for dies_at in range(1, 400):
        here = World(tmp_path / str(dies_at), world.version)
        effect = here.tree(*PODS)
        context = Context(entity="node", cause="", dies_at=dies_at)
        try:
            here.once(effect, context)
        except Killed:
            points += 1
        assert here.once(effect).failed == (), f"killed at {context.points[-1]}"
        assert here.steps(effect) == 0
        if len(context.points) < dies_at:
            break
    assert points > 30


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[World]:
    """Yield a world on this machine's own cgroups, below a cgroup of the test."""
    cgroups = LinuxCgroups(tmp_path / "kept")
    tree = cgroups.tree("cgroupfs")
    assert tree is not None
    found = World(tmp_path / "unused", tree.version)
    found.cgroups, found.above = cgroups, (f"chronolet-killed-{os.getpid()}",)
    try:
        yield found
    finally:
        tree.remove(found.above)


def test_on_this_machines_cgroups_a_kill_at_any_point_leaves_nothing(machine: World) -> None:
    """Two trees alternate, so that a Burstable and a BestEffort pod are added and removed repeatedly."""
    tree = machine.cgroups.tree("cgroupfs")
    assert tree is not None
    pods = {0: need("Guaranteed", cpu=700), 1: need("Burstable"), 2: need("BestEffort")}
    points, before, dies_at, revision = 0, -1, 0, 0
    while points > before:
        before, dies_at = points, dies_at + 1
        for wished in (tuple(pods.values()), (pods[0],)):
            revision += 1
            effect = machine.tree(*wished, revision=revision)
            context = Context(entity="node", cause="", dies_at=dies_at)
            try:
                machine.once(effect, context)
            except Killed:
                points += 1
            assert machine.once(effect).failed == ()
            assert machine.steps(effect) == 0
            assert len(tree.pods(machine.root)) == len(wished)
    assert points > 30


def test_values_changed_by_hand_are_restored_and_reported(world: World) -> None:
    world.once(world.tree(*PODS))
    world.file("kubepods", "podu0", "pids.max").write_text("7")
    expected = (Change(file="pids.max", found="7", wanted="max"),)
    kept = world.once(world.tree(*PODS, settled=True))
    assert list(kept.restored) == [signals.Restored(path=("kubepods", "podu0"), changes=expected)]
    tree = world.kernel.tree("cgroupfs")
    assert tree is not None
    tree.remove(("kubepods", "burstable", "podu1"))
    kept = world.once(world.tree(*PODS, settled=True))
    assert list(kept.restored) == [signals.Restored(path=("kubepods", "burstable", "podu1"), changes=(Change(),))]


def test_a_change_is_detected_against_the_values_that_the_worker_set(world: World) -> None:
    keeping = effects.TreeKeeper(world.deps())
    world.again(keeping, world.tree(*PODS))
    world.file("kubepods", "burstable", "pids.max").write_text("7")
    kept = world.again(keeping, world.tree(*PODS[:2], revision=2))
    assert [one.path for one in kept.restored] == [("kubepods", "burstable")]


def test_a_pod_waits_only_for_new_cgroups(world: World) -> None:
    """All other cgroups are checked once per period, and when a pod has been removed."""
    keeping = effects.TreeKeeper(world.deps())
    assert world.again(keeping, world.tree(*PODS)) == signals.TreeKept(revision=1, restored=[], removed=[])
    world.file("kubepods", "podu0", "pids.max").write_text("7")
    context = Context(entity="node", cause="")
    assert world.again(keeping, world.tree(*PODS, need("Guaranteed"), revision=2), context).restored == []
    assert len(context.sent) == 1
    assert {point for point in context.points if "list" in point or "remove" in point} == set()
    assert [one.path for one in world.again(keeping, world.tree(*PODS, revision=3)).restored] == [("kubepods", "podu0")]


def test_an_unowned_cgroup_is_removed_with_its_processes(world: World) -> None:
    world.once(world.tree(*PODS))
    process = subprocess.Popen(["sleep", "3600"])
    try:
        procs = [world.kernel.folder / name for name in world.kernel.controllers] if world.version == 1 else []
        for point in procs or [world.kernel.folder]:
            (point / "kubepods/besteffort/podu2/cgroup.procs").write_text(f"{process.pid}\n")
        context = Context(entity="node", cause="")
        context.at["after cgroup.kill"] = lambda: emptied(world, process)
        kept = world.once(world.tree(*PODS[:2], revision=2), context)
        assert list(kept.removed) == [signals.Removed(path=("kubepods", "besteffort", "podu2"), killed=1)]
        assert process.wait(HANG_SECONDS) == -9
    finally:
        process.kill()
        process.wait()
    assert world.operations[-1] == "destroy"


def emptied(world: World, process: subprocess.Popen[bytes]) -> None:
    """Do what the kernel does when a process exits: remove it from its cgroups."""
    process.wait(HANG_SECONDS)
    for path in world.kernel.folder.rglob("cgroup.procs"):
        path.write_text("")


def test_the_cgroup_of_a_running_container_is_not_removed(world: World) -> None:
    """The container belongs to a pod that is not in the log yet, because it is being adopted."""
    world.once(world.tree(*PODS))
    for path in world.kernel.folder.rglob("besteffort/podu2/cgroup.procs"):
        path.write_text("1\n")
    owner = labels.Owner(pod="default/p2", uid="u2", container="POD", attempt=0)
    spec = SandboxSpec(name="s", labels=labels.written(NAME, owner), image="pause", hostname="h")
    world.runtime.start(world.runtime.create_sandbox(spec))
    assert world.once(world.tree(*PODS[:2], revision=2)).removed == []
    world.runtime.refuse("list", Refusal("unavailable", "no engine"))
    assert world.once(world.tree(*PODS[:2], revision=3)).removed == []


def test_a_failed_write_is_reported_and_the_others_follow(world: World) -> None:
    world.kernel.refuse = lambda path: errno.EROFS if "burstable" in path else 0
    kept = world.once(world.tree(*PODS))
    assert [one.path for one in kept.failed] == [("kubepods", "burstable"), ("kubepods", "burstable", "podu1")]
    assert all("Read-only file system" in one.error for one in kept.failed)
    world.kernel.refuse = lambda _: 0
    assert world.once(world.tree(*PODS)).failed == ()


def test_a_class_above_its_limit_cannot_grow(world: World) -> None:
    world.once(world.tree(*PODS[1:]))
    limit = "memory.max" if world.version == 2 else "memory.limit_in_bytes"
    used = "memory.current" if world.version == 2 else "memory.usage_in_bytes"
    file = world.file("kubepods", "burstable", limit)
    file.with_name(used).write_text(str(8 * GIB - 4096))
    write = world.kernel.write

    def busy(path: str, text: str) -> None:
        if path == str(file) and int(text) < 8 * GIB - 4096:
            raise OSError(errno.EBUSY, "Device or resource busy", path)
        write(path, text)

    world.kernel.write = busy  # type: ignore[method-assign]
    assert world.once(world.tree(*PODS)).failed == ()
    assert file.read_text() == str(8 * GIB - 4096)


def test_the_tree_of_another_node_is_not_touched(world: World) -> None:
    world.once(world.tree(*PODS))
    tree = world.kernel.tree("cgroupfs")
    assert tree is not None
    writes = world.kernel.writes
    context = Context(entity="node", cause="")
    other = effects.QosDependencies(
        sharing=Sharing(name="n2"), cgroups=world.kernel, runtime=world.runtime, host=LinuxHost(world.kernel.folder)
    )
    kept = sent_by(lambda: effects.TreeKeeper(other).keep(world.tree(), context), context)[-1]
    (failed,) = kept.failed
    assert "belongs to chronolet's node n1" in failed.error
    assert world.kernel.writes == writes


# -- the node ---------------------------------------------------------------------------------------------------------


def inspected(world: World, of_engine: str = "cgroupfs", **sharing: Any) -> Any:
    world.runtime.engine = lambda: Engine(name="d", version="1", api_version="1", cgroup_driver=of_engine)  # type: ignore[method-assign]
    context = Context(entity="node", cause="")
    looking = effects.NodeInspector(world.deps(**sharing))
    effect = wanted.LookAtNode(subject="node", intent="look")
    return sent_by(lambda: looking.look(effect, context), context)[0].node


def test_the_node_is_described(world: World) -> None:
    found = inspected(world)
    assert (found.name, found.version, found.driver, found.root) == (NAME, world.version, "cgroupfs", ROOT)
    assert found.capacity.cpu_milli >= 1000
    assert found.capacity.memory_bytes > GIB
    assert found.capacity.pids > 1000
    assert found.allocatable.memory_bytes == found.capacity.memory_bytes
    assert inspected(world, "systemd").driver == "systemd"
    assert inspected(world, "systemd", driver="cgroupfs").driver == "cgroupfs"


def test_a_node_without_cgroups_reports_the_consequences(world: World) -> None:
    for found in (inspected(world, "none"), inspected(world, per_qos=False)):
        assert (found.version, found.driver, found.root) == (0, "", ())
        assert found.lost
    world.kernel.why_not = lambda: "/sys/fs/cgroup is mounted read-only"  # type: ignore[method-assign]
    assert inspected(world).lost[0] == "/sys/fs/cgroup is mounted read-only: pods have no cgroups of their own"


def test_a_node_without_access_to_the_kernel_log_reports_the_consequences(world: World, tmp_path: Path) -> None:
    world.kills = KernelLog(str(tmp_path / "none"))
    (sent,) = (one for one in inspected(world).lost if "OOM kills" in one)
    assert sent.startswith(f"{tmp_path}/none: No such file or directory: OOM kills are known only as far")


def test_an_unavailable_engine_is_retried(world: World) -> None:
    answers = [Refusal("unavailable", "away"), Engine(name="d", version="1", api_version="1")]

    def engine() -> Engine:
        answer = answers.pop(0)
        if isinstance(answer, Refusal):
            raise answer
        return answer

    world.runtime.engine = engine  # type: ignore[method-assign]
    context = Context(entity="node", cause="")
    effect = wanted.LookAtNode(subject="node", intent="look")
    deps = structs.replace(world.deps(), timing=effects.Timing(retry_seconds=0.01))
    assert sent_by(lambda: effects.NodeInspector(deps).look(effect, context), context)[0].node.version
    assert answers == []
