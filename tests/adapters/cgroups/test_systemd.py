"""What systemd is told of cgroups, and what is written into a container's own: over files, with a busctl of notes.

tests/setup/cgroup2_machine has a real one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chronolet.adapters.cgroups import ContainerGroups, KernelOfFiles
from chronolet.adapters.cgroups.marks import Marks
from chronolet.adapters.cgroups.systemd import Manager, SystemdTree, properties
from chronolet.ports.machine.cgroups import CgroupRefusal
from chronolet.rules.resources.cgroups import Cgroup, Values
from tests.support.scratch import HANG_SECONDS

MIB = 1 << 20
INFINITY = (1 << 64) - 1
POD = ("kubepods", "burstable", "podu-1")
UNIT = "kubepods-burstable-podu_1.slice"
PATIENT = Manager(HANG_SECONDS)
FULL = Values(cpu_shares=512, cpu_quota_us=150_000, cpu_period_us=100_000, memory_limit_bytes=64 * MIB, pids=30)


class Systemd:
    """Programs in its place: `told` is what they were called with, `says` the error that the next ones answer with."""

    def __init__(self, folder: Path) -> None:
        self._notes, self._error = folder / "notes", folder / "error"
        for program in ("busctl", "systemctl"):
            script = folder / program
            script.write_text(
                f'#!/bin/sh\necho "{program} $*" >> {self._notes}\n'
                f"[ ! -e {self._error} ] || {{ cat {self._error} >&2; exit 1; }}\n"
            )
            script.chmod(0o755)

    def says(self, error: str) -> None:
        self._error.write_text(error)

    @property
    def told(self) -> list[str]:
        """Since it was asked before."""
        lines = self._notes.read_text().splitlines() if self._notes.exists() else []
        self._notes.unlink(missing_ok=True)
        return [line.removeprefix("busctl call ").partition(".Manager ")[2] or line for line in lines]


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Systemd(folder)


@pytest.fixture
def tree(tmp_path: Path) -> SystemdTree:
    kernel = KernelOfFiles(tmp_path / "cgroup", 2, ("cpu", "memory", "pids", "hugetlb"))
    return SystemdTree(kernel.mounts(), "systemd", kernel, Marks(tmp_path / "marks"), manager=PATIENT)


def settle(tree: SystemdTree, values: Values, path: tuple[str, ...] = POD) -> None:
    for step in tree.missing(Cgroup(path=path, values=values)):
        tree.take(step)


def test_a_new_slice_begins_with_all_its_values_in_one_call(tree: SystemdTree, systemd: Systemd) -> None:
    settle(tree, FULL)
    (told,) = systemd.told
    assert told == (
        f"StartTransientUnit ssa(sv)a(sa(sv)) {UNIT} replace 12 DefaultDependencies b false CPUAccounting b true "
        "MemoryAccounting b true TasksAccounting b true CPUWeight t 20 CPUQuotaPerSecUSec t 1500000 "
        f"CPUQuotaPeriodUSec t 100000 MemoryMax t {64 * MIB} MemoryMin t 0 MemoryLow t 0 MemoryHigh t {INFINITY} "
        "TasksMax t 30 0"
    )
    assert tree.missing(Cgroup(path=POD, values=FULL)) == ()


def test_a_change_is_told_and_written(tree: SystemdTree, systemd: Systemd) -> None:
    settle(tree, FULL)
    assert systemd.told
    settle(tree, Values(cpu_shares=2))
    assert systemd.told == [
        f"SetUnitProperties sba(sv) {UNIT} true 1 CPUWeight t 1",
        f"SetUnitProperties sba(sv) {UNIT} true 1 CPUQuotaPerSecUSec t {INFINITY}",
        f"SetUnitProperties sba(sv) {UNIT} true 1 MemoryMax t {INFINITY}",
        f"SetUnitProperties sba(sv) {UNIT} true 1 TasksMax t {INFINITY}",
    ]
    assert tree.missing(Cgroup(path=POD, values=Values(cpu_shares=2))) == ()


def test_huge_pages_have_no_name_there(tree: SystemdTree, systemd: Systemd) -> None:
    settle(tree, FULL)
    assert systemd.told
    pages = Values(**{name: getattr(FULL, name) for name in FULL.__struct_fields__} | {"huge_pages": ((2 * MIB, 0),)})
    settle(tree, pages)
    assert systemd.told == []
    assert tree.missing(Cgroup(path=POD, values=pages)) == ()


def test_a_slice_that_runs_already_is_given_the_values(tree: SystemdTree, systemd: Systemd) -> None:
    systemd.says(f"Call failed: Unit {UNIT} already exists.")
    settle(tree, Values(cpu_shares=2))
    started, given = systemd.told
    assert started.startswith("StartTransientUnit")
    assert given.startswith(f"SetUnitProperties sba(sv) {UNIT} true 7 CPUWeight t 1 CPUQuotaPerSecUSec")


def test_which_controllers_are_handed_down_is_systemds_to_say(
    tree: SystemdTree, systemd: Systemd, tmp_path: Path
) -> None:
    """It takes away what nobody beneath needs; a new slice gets all of them."""
    above = Cgroup(path=POD[:-1], values=Values(cpu_shares=2))
    settle(tree, FULL)
    settle(tree, above.values, above.path)
    control = tmp_path / "cgroup/kubepods.slice/kubepods-burstable.slice/cgroup.subtree_control"
    control.write_text("hugetlb")
    assert tree.missing(above) == ()
    settle(tree, FULL, (*above.path, "podu-2"))
    assert {"cpu", "memory", "pids", "hugetlb"} <= set(control.read_text().split())


def test_a_containers_scope_is_told_its_values(tree: SystemdTree, systemd: Systemd, tmp_path: Path) -> None:
    """One that has ended meanwhile is nothing to be told of."""
    settle(tree, FULL)
    pod = next((tmp_path / "cgroup").rglob(UNIT))
    (pod / "cgroup.subtree_control").write_text("memory")
    KernelOfFiles(tmp_path / "cgroup", 2, ("cpu", "memory", "pids", "hugetlb")).make(f"{pod}/docker-c1.scope")
    assert systemd.told
    one = Cgroup(path=(*POD, "c1"), values=Values(memory_low_bytes=MIB, memory_high_bytes=2 * MIB), is_containers=True)
    for step in tree.missing(one):
        tree.take(step)
    assert systemd.told == [
        f"SetUnitProperties sba(sv) docker-c1.scope true 1 MemoryLow t {MIB}",
        f"SetUnitProperties sba(sv) docker-c1.scope true 1 MemoryHigh t {2 * MIB}",
    ]
    assert (pod / "docker-c1.scope/memory.high").read_text() == str(2 * MIB)
    assert tree.missing(one) == ()


def test_the_end_of_a_slice(tree: SystemdTree, systemd: Systemd) -> None:
    settle(tree, FULL)
    assert systemd.told
    tree.remove(POD)
    assert systemd.told == [f"systemctl stop {UNIT}"]
    assert tree.missing(Cgroup(path=POD, values=FULL))[0].file == ""
    systemd.says(f"Failed to stop {UNIT}: Unit {UNIT} not loaded.")
    tree.remove(POD)


def test_what_systemd_refuses_is_said(tree: SystemdTree, systemd: Systemd, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd.says("Call failed: Access denied")
    with pytest.raises(CgroupRefusal, match=r"busctl call .* StartTransientUnit .*: Call failed: Access denied"):
        settle(tree, FULL)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CgroupRefusal, match=r"busctl call: .*No such file"):
        settle(tree, FULL)


def test_no_limit_and_none_at_all() -> None:
    assert properties("memory.max", "max") == {"MemoryMax": INFINITY}
    assert properties("memory.limit_in_bytes", "-1") == {"MemoryLimit": INFINITY}
    assert (properties("memory.max", "0"), properties("memory.min", "0")) == ({"MemoryMax": 1}, {"MemoryMin": 0})
    assert properties("cpu.max", "5000 10000") == {"CPUQuotaPerSecUSec": 500_000, "CPUQuotaPeriodUSec": 10_000}
    assert properties("hugetlb.2MB.max", "0") == {}


# -- a container's own ------------------------------------------------------------------------------------------------

ID = "c0ffee"
HELD = Values(memory_low_bytes=MIB, memory_high_bytes=2 * MIB, huge_pages=((2 * MIB, 0),))


class Container:
    """A container's process in a cgroup of files."""

    def __init__(self, folder: Path, version: int, name: str = ID) -> None:
        controllers = ("cpu", "memory", "pids", "hugetlb")
        self.kernel = KernelOfFiles(folder / "cgroup", version, controllers)
        self.proc = folder / "proc"
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "77").mkdir()
        lines, mounts = [], []
        for one in self.kernel.mounts():
            kind = "cgroup2" if version == 2 else "cgroup"
            mounts.append(f"1 0 0:1 / {one.point} rw - {kind} cgroup rw,{','.join(one.controllers)}")
            lines.append(f"0:{','.join(one.controllers)}:/kubepods/{name}")
            if version == 2:
                self.kernel.write(f"{one.point}/cgroup.subtree_control", "+cpu +memory +pids +hugetlb")
            self.kernel.make(f"{one.point}/kubepods")
            if version == 2:
                self.kernel.write(f"{one.point}/kubepods/cgroup.subtree_control", "+cpu +memory +pids +hugetlb")
            self.kernel.make(f"{one.point}/kubepods/{name}")
        (self.proc / "self/mountinfo").write_text("\n".join(mounts))
        (self.proc / "77/cgroup").write_text("\n".join(lines))
        self.folder = Path(self.kernel.mounts()[-1].point, "kubepods", name)

    def hold(self, values: Values = HELD, container_id: str = ID) -> None:
        ContainerGroups(self.proc, self.kernel).hold(77, container_id, values)

    def says(self, file: str) -> str:
        return (self.folder / file).read_text()


def test_only_what_is_given_is_written_beside_the_runtimes_own(tmp_path: Path, systemd: Systemd) -> None:
    one = Container(tmp_path, 2)
    (one.folder / "cpu.max").write_text("50000 100000")
    one.hold()
    found = [one.says(name) for name in ("memory.low", "memory.high", "memory.min", "hugetlb.2MB.max", "cpu.max")]
    assert found == [str(MIB), str(2 * MIB), "0", "0", "50000 100000"]
    writes = one.kernel.writes
    one.hold()
    assert one.kernel.writes == writes
    assert systemd.told == []


def test_systemd_hears_of_what_is_its_own(tmp_path: Path, systemd: Systemd) -> None:
    one = Container(tmp_path, 2, f"docker-{ID}.scope")
    one.hold()
    assert systemd.told == [
        f"SetUnitProperties sba(sv) docker-{ID}.scope true 2 MemoryLow t {MIB} MemoryHigh t {2 * MIB}"
    ]
    assert one.says("memory.high") == str(2 * MIB)


def test_v1_has_huge_pages_only(tmp_path: Path) -> None:
    one = Container(tmp_path, 1)
    writes = one.kernel.writes
    one.hold()
    assert (one.says("hugetlb.2MB.limit_in_bytes"), one.kernel.writes) == ("0", writes + 1)


def test_who_has_ended_is_nobody(tmp_path: Path) -> None:
    one = Container(tmp_path, 2)
    writes = one.kernel.writes
    one.hold(container_id="another")
    ContainerGroups(one.proc, one.kernel).hold(78, ID, HELD)
    one.kernel.refuse = lambda _: 2
    one.hold()
    assert one.kernel.writes == writes


def test_what_the_kernel_has_not_or_refuses_is_said(tmp_path: Path) -> None:
    one = Container(tmp_path, 2)
    (one.folder / "hugetlb.2MB.max").unlink()
    with pytest.raises(CgroupRefusal, match=r"controller hugetlb is missing: cannot write hugetlb\.2MB\.max"):
        one.hold()
    one.kernel.refuse = lambda _: 30
    with pytest.raises(CgroupRefusal, match=r"memory\.low: write 3145728: Read-only file system"):
        one.hold(Values(memory_low_bytes=3 * MIB))
