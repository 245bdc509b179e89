"""A container's cgroup values are written even if the agent is killed before it writes them, and are restored after
changes by hand.

The pod's worker, qos' decider and qos' worker are tested on a tree of files that looks like cgroup v2.
"""

from __future__ import annotations

import errno
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.qos import effects, signals, wanted
from chronolet.qos.decider import DECIDER
from chronolet.rules.resources.cgroups import Values
from chronolet.rules.resources.container_limits import Holding
from chronolet.rules.resources.needs import needs
from chronolet_schemas import pod, qos
from chronolet_schemas.podspec import ResourceRequirements
from tests.deciders.given import given
from tests.deciders.qos.nodes import node
from tests.integration.effects.cgroups import test_workers as machines
from tests.integration.effects.support import UID, Context, Killed, World, container, start_container
from tests.integration.effects.support import pod as a_pod
from tests.support.docker.images import BUSYBOX, PAUSE

MANIFEST = a_pod(container(resources=ResourceRequirements(limits={"memory": "10Mi"}, requests={"memory": "4Mi"})))
HELD = {"memory.low": str(4 << 20), "memory.high": str(7 << 20)}
WEB = {"pod": "default/web", "uid": UID}
POD = ("kubepods", "burstable", f"pod{UID}")


class Unused:
    """Cgroups that must not be used: fails if a container's values are written when it starts."""

    def hold(self, pid: int, container_id: str, values: Values) -> None:
        raise AssertionError((pid, container_id, values))


class Machine:
    """A pod with a cgroup and a container; the agent was killed immediately after the container started."""

    def __init__(self, folder: Path) -> None:
        self.files = machines.World(folder / "cgroup", 2)
        self.kernel = self.files.kernel
        of_node = node(version=2, memory_reservation="TieredReservation", memory_throttling_factor="0.5")
        request = pod.CgroupRequested(needs=needs(MANIFEST.spec), **WEB)
        self.scene = given(DECIDER, qos.NodeDescribed(node=of_node)).when(request)
        self.scene.when(self.files.once(self.tree))
        assert self.scene.kinds == ["CgroupReady"]
        self.id = self._started_and_killed(folder / "pods")
        self.own = self.kernel.folder.joinpath(*POD, self.id)
        self.kernel.write(f"{self.own.parent}/cgroup.subtree_control", "+memory")
        self.kernel.make(str(self.own))

    def _started_and_killed(self, folder: Path) -> str:
        """Start the container and kill the agent immediately afterwards; return the container's id."""
        runtime = FakeRuntime(images=(PAUSE.reference, BUSYBOX.reference))
        holding = Holding(reservation="TieredReservation", throttling=Fraction("0.5"))
        world = World(runtime, folder, cgroups=Unused(), holding=holding)
        context, box = Context(), world.sandbox(MANIFEST).id
        context.at["after docker.start"] = dies
        with pytest.raises(Killed):
            world.run(start_container(MANIFEST, box), context)
        (found,) = (one for one in world.ours() if one.id != box and one.state == "running")
        return found.id

    @property
    def tree(self) -> wanted.KeepTree:
        found: Any = self.scene.effects["tree"]
        assert isinstance(found, wanted.KeepTree)
        return found

    def report_start(self) -> None:
        """Report the start from a source other than the worker, so that no worker repeats it."""
        self.scene.when(pod.ContainerStarted(container="app", attempt=0, id=self.id, started_at=1, **WEB))

    def values(self) -> dict[str, str]:
        return {file: (self.own / file).read_text() for file in HELD}


def dies() -> None:
    raise Killed


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_next_agent_writes_the_values_if_the_agent_is_killed_after_a_start(machine: Machine) -> None:
    assert machine.values() == {"memory.low": "0", "memory.high": "max"}
    machine.report_start()
    assert machine.values() != HELD
    nothing_by_hand = signals.TreeKept(revision=machine.tree.revision, restored=[], removed=[])
    assert machine.files.once(machine.tree) == nothing_by_hand
    assert machine.values() == HELD
    writes = machine.kernel.writes
    assert machine.files.once(machine.tree) == nothing_by_hand
    assert machine.kernel.writes == writes


def test_the_next_agent_completes_writes_interrupted_at_any_point(tmp_path: Path) -> None:
    killed = 0
    for dies_at in range(1, 20):
        machine = Machine(tmp_path / str(dies_at))
        machine.report_start()
        context = Context(entity="node", cause="", dies_at=dies_at)
        try:
            machine.files.once(machine.tree, context)
        except Killed:
            killed += 1
            assert machine.files.once(machine.tree).failed == ()
        assert machine.values() == HELD
        if len(context.points) < dies_at:
            break
    assert killed == 4, "before and after each of two writes"


def test_values_changed_by_hand_are_restored_and_reported(machine: Machine) -> None:
    machine.report_start()
    keeping = effects.TreeKeeper(machine.files.deps())
    machine.files.again(keeping, machine.tree)
    (machine.own / "memory.high").write_text("max")
    report = keeping.once(machine.tree, Context(entity="node", cause=""), whole=True)
    change = qos.Change(file="memory.high", found="max", wanted=HELD["memory.high"])
    assert report.restored == [signals.Restored(path=(*POD, machine.id), changes=(change,))]
    assert machine.values() == HELD
    machine.scene.when(signals.TreeKept(revision=1, restored=report.restored))
    machine.scene.then(qos.CgroupRestored(cgroup="/".join((*POD, machine.id)), changes=(change,)))


def test_a_dead_container_needs_no_values(machine: Machine) -> None:
    machine.report_start()
    machine.files.once(machine.tree)
    shutil.rmtree(machine.own)
    writes = machine.kernel.writes
    assert machine.files.once(machine.tree).failed == ()
    assert machine.kernel.writes == writes


def test_a_container_that_ends_during_the_write_is_not_a_failure(machine: Machine) -> None:
    machine.report_start()

    def ends(path: str) -> int:
        if not path.startswith(str(machine.own)):
            return 0
        shutil.rmtree(machine.own)
        return errno.ENOENT

    machine.kernel.refuse = ends
    assert machine.files.once(machine.tree).failed == ()
    assert not machine.own.exists()


def test_values_that_the_kernel_refuses_are_reported_and_retried(machine: Machine) -> None:
    machine.report_start()
    machine.kernel.refuse = lambda path: errno.EROFS if "memory.high" in path and machine.id in path else 0
    kept = machine.files.once(machine.tree)
    assert [one.path for one in kept.failed] == [(*POD, machine.id)]
    machine.scene.when(kept)
    assert machine.scene.only(qos.CgroupFailing).error.endswith("Read-only file system")
    machine.kernel.refuse = lambda _: 0
    assert machine.files.once(machine.tree).failed == ()
    assert machine.values() == HELD
