"""Cgroup limits that Docker cannot set are applied on the first start notification of a container."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.kernel.effects.slot import LostOwnership
from chronolet.ports.machine.cgroups import CgroupRefusal
from chronolet.rules.resources.cgroups import Values
from chronolet.rules.resources.container_limits import Holding
from chronolet_schemas.podspec import ResourceRequirements
from tests.integration.effects.support import Context, Killed, World, container, pod, start_container
from tests.support.docker.images import BUSYBOX, PAUSE

MANIFEST = pod(container(resources=ResourceRequirements(limits={"memory": "10Mi"})))
HELD = Values(memory_high_bytes=9 << 20)


class Notes:
    """Cgroups that record the values written, or, if `refusal` is not empty, raise CgroupRefusal with this text."""

    refusal = ""

    def __init__(self) -> None:
        self.held: list[tuple[str, Values]] = []

    def hold(self, pid: int, container_id: str, values: Values) -> None:
        assert pid >= 0
        if self.refusal:
            raise CgroupRefusal(self.refusal)
        self.held.append((container_id, values))


class Place:
    def __init__(self, root: Path) -> None:
        self.notes = Notes()
        self.runtime = FakeRuntime(images=(PAUSE.reference, BUSYBOX.reference))
        holding = Holding(throttling=Fraction("0.9"))
        self.world = World(self.runtime, root, cgroups=self.notes, holding=holding)
        self.box = self.world.sandbox(MANIFEST).id

    def start(self, context: Context | None = None) -> str:
        return str(self.world.run(start_container(MANIFEST, self.box), context or Context()).id)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_limits_are_applied_once_a_container_runs(place: Place) -> None:
    started = place.start()
    assert place.notes.held == [(started, HELD)]


def test_limits_are_applied_if_another_source_reports_the_start_first(place: Place) -> None:
    context = Context()
    context.at["after docker.start"] = context.cancelled.set
    with pytest.raises(LostOwnership):
        place.start(context)
    assert [values for _, values in place.notes.held] == [HELD]


def test_the_next_worker_applies_the_limits_after_a_kill(place: Place) -> None:
    context = Context()

    def dies() -> None:
        raise Killed

    context.at["after docker.start"] = dies
    with pytest.raises(Killed):
        place.start(context)
    assert place.notes.held == []
    started = place.start()
    assert place.notes.held == [(started, HELD)]


def test_limits_that_the_kernel_refuses_do_not_prevent_the_start(place: Place) -> None:
    place.notes.refusal = "memory.high: write 9437184: Read-only file system"
    started = place.start()
    found = place.runtime.inspect(started)
    assert found is not None
    assert found.state == "running"
    assert place.notes.held == []
