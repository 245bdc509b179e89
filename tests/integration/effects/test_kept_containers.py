"""A container's own values are kept like those of its pod: whoever was killed between its start and the first write, or
changed them by hand, they are right again.

The pod's worker and qos' own, with qos' decider between them, over a tree of files as cgroup v2 is.
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
from tests.integration.effects import test_qos_workers as machines
from tests.integration.effects.support import UID, Context, Killed, World, container, start_container
from tests.integration.effects.support import pod as a_pod
from tests.support.docker.images import BUSYBOX, PAUSE

MANIFEST = a_pod(container(resources=ResourceRequirements(limits={"memory": "10Mi"}, requests={"memory": "4Mi"})))
HELD = {"memory.low": str(4 << 20), "memory.high": str(7 << 20)}
WEB = {"pod": "default/web", "uid": UID}
POD = ("kubepods", "burstable", f"pod{UID}")


class Nobody:
    """Whoever writes a container's values at its start, had it come as far as that."""

    def hold(self, pid: int, container_id: str, values: Values) -> None:
        raise AssertionError((pid, container_id, values))


class Machine:
    """A pod whose cgroup is there, and whose only container has run for no longer than its agent."""

    def __init__(self, folder: Path) -> None:
        self.files = machines.World(folder / "cgroup", 2)
        self.kernel = self.files.kernel
        of_node = node(version=2, memory_reservation="TieredReservation", memory_throttling_factor="0.5")
        asked = pod.CgroupRequested(needs=needs(MANIFEST.spec), **WEB)
        self.scene = given(DECIDER, qos.NodeDescribed(node=of_node)).when(asked)
        self.scene.when(self.files.once(self.tree))
        assert self.scene.kinds == ["CgroupReady"]
        self.id = self._started_and_killed(folder / "pods")
        self.own = self.kernel.folder.joinpath(*POD, self.id)
        self.kernel.write(f"{self.own.parent}/cgroup.subtree_control", "+memory")
        self.kernel.make(str(self.own))

    def _started_and_killed(self, folder: Path) -> str:
        """Right after the runtime has started it."""
        runtime = FakeRuntime(images=(PAUSE.reference, BUSYBOX.reference))
        holding = Holding(reservation="TieredReservation", throttling=Fraction("0.5"))
        world = World(runtime, folder, cgroups=Nobody(), holding=holding)
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

    def told_that_it_runs(self) -> None:
        """By others: no worker will begin the start anew."""
        self.scene.when(pod.ContainerStarted(container="app", attempt=0, id=self.id, started_at=1, **WEB))

    def says(self) -> dict[str, str]:
        return {file: (self.own / file).read_text() for file in HELD}


def dies() -> None:
    raise Killed


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_killed_right_after_its_start_the_next_agent_writes_its_values(machine: Machine) -> None:
    assert machine.says() == {"memory.low": "0", "memory.high": "max"}
    machine.told_that_it_runs()
    assert machine.says() != HELD
    nothing_by_hand = signals.TreeKept(revision=machine.tree.revision, restored=[], removed=[])
    assert machine.files.once(machine.tree) == nothing_by_hand
    assert machine.says() == HELD
    writes = machine.kernel.writes
    assert machine.files.once(machine.tree) == nothing_by_hand
    assert machine.kernel.writes == writes


def test_killed_at_every_point_of_writing_them_the_next_one_goes_on(tmp_path: Path) -> None:
    killed = 0
    for dies_at in range(1, 20):
        machine = Machine(tmp_path / str(dies_at))
        machine.told_that_it_runs()
        context = Context(entity="node", cause="", dies_at=dies_at)
        try:
            machine.files.once(machine.tree, context)
        except Killed:
            killed += 1
            assert machine.files.once(machine.tree).failed == ()
        assert machine.says() == HELD
        if len(context.points) < dies_at:
            break
    assert killed == 4, "before and after each of two writes"


def test_what_was_changed_by_hand_is_put_right_and_said(machine: Machine) -> None:
    machine.told_that_it_runs()
    keeping = effects.TreeKeeper(machine.files.outside())
    machine.files.again(keeping, machine.tree)
    (machine.own / "memory.high").write_text("max")
    report = keeping.once(machine.tree, Context(entity="node", cause=""), whole=True)
    change = qos.Change(file="memory.high", found="max", wanted=HELD["memory.high"])
    assert report.restored == [signals.Restored(path=(*POD, machine.id), changes=(change,))]
    assert machine.says() == HELD
    machine.scene.when(signals.TreeKept(revision=1, restored=report.restored))
    machine.scene.then(qos.CgroupRestored(cgroup="/".join((*POD, machine.id)), changes=(change,)))


def test_one_that_has_ended_needs_nothing(machine: Machine) -> None:
    machine.told_that_it_runs()
    machine.files.once(machine.tree)
    shutil.rmtree(machine.own)
    writes = machine.kernel.writes
    assert machine.files.once(machine.tree).failed == ()
    assert machine.kernel.writes == writes


def test_one_that_ends_while_its_values_are_written_is_no_failure(machine: Machine) -> None:
    machine.told_that_it_runs()

    def ends(path: str) -> int:
        if not path.startswith(str(machine.own)):
            return 0
        shutil.rmtree(machine.own)
        return errno.ENOENT

    machine.kernel.refuse = ends
    assert machine.files.once(machine.tree).failed == ()
    assert not machine.own.exists()


def test_what_the_kernel_refuses_is_said_and_tried_again(machine: Machine) -> None:
    machine.told_that_it_runs()
    machine.kernel.refuse = lambda path: errno.EROFS if "memory.high" in path and machine.id in path else 0
    kept = machine.files.once(machine.tree)
    assert [one.path for one in kept.failed] == [(*POD, machine.id)]
    machine.scene.when(kept)
    assert machine.scene.only(qos.CgroupFailing).error.endswith("Read-only file system")
    machine.kernel.refuse = lambda _: 0
    assert machine.files.once(machine.tree).failed == ()
    assert machine.says() == HELD
