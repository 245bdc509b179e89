"""Calls to systemd for cgroups, and writes to the cgroup of a container, tested with plain files and a fake busctl.

tests/setup/cgroup2_machine tests them with a real systemd.
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
    """Fake `busctl` and `systemctl`, which record their calls; `fail` makes later calls fail with an error."""

    def __init__(self, folder: Path) -> None:
        self._notes, self._error = folder / "notes", folder / "error"
        for program in ("busctl", "systemctl"):
            script = folder / program
            script.write_text(
                f'#!/bin/sh\necho "{program} $*" >> {self._notes}\n'
                f"[ ! -e {self._error} ] || {{ cat {self._error} >&2; exit 1; }}\n"
            )
            script.chmod(0o755)

    def fail(self, error: str) -> None:
        self._error.write_text(error)

    @property
    def calls(self) -> list[str]:
        """The calls received since this property was last read."""
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


def test_a_new_slice_gets_all_values_in_one_call(tree: SystemdTree, systemd: Systemd) -> None:
    settle(tree, FULL)
    (call,) = systemd.calls
    assert call == (
        f"StartTransientUnit ssa(sv)a(sa(sv)) {UNIT} replace 12 DefaultDependencies b false CPUAccounting b true "
        "MemoryAccounting b true TasksAccounting b true CPUWeight t 20 CPUQuotaPerSecUSec t 1500000 "
        f"CPUQuotaPeriodUSec t 100000 MemoryMax t {64 * MIB} MemoryMin t 0 MemoryLow t 0 MemoryHigh t {INFINITY} "
        "TasksMax t 30 0"
    )
    assert tree.missing(Cgroup(path=POD, values=FULL)) == ()


def test_a_change_is_sent_to_systemd_and_written(tree: SystemdTree, systemd: Systemd) -> None:
    settle(tree, FULL)
    assert systemd.calls
    settle(tree, Values(cpu_shares=2))
    assert systemd.calls == [
        f"SetUnitProperties sba(sv) {UNIT} true 1 CPUWeight t 1",
        f"SetUnitProperties sba(sv) {UNIT} true 1 CPUQuotaPerSecUSec t {INFINITY}",
        f"SetUnitProperties sba(sv) {UNIT} true 1 MemoryMax t {INFINITY}",
        f"SetUnitProperties sba(sv) {UNIT} true 1 TasksMax t {INFINITY}",
    ]
    assert tree.missing(Cgroup(path=POD, values=Values(cpu_shares=2))) == ()


def test_systemd_has_no_property_for_huge_pages(tree: SystemdTree, systemd: Systemd) -> None:
    settle(tree, FULL)
    assert systemd.calls
    pages = Values(**{name: getattr(FULL, name) for name in FULL.__struct_fields__} | {"huge_pages": ((2 * MIB, 0),)})
    settle(tree, pages)
    assert systemd.calls == []
    assert tree.missing(Cgroup(path=POD, values=pages)) == ()


def test_the_values_of_an_existing_slice_are_set(tree: SystemdTree, systemd: Systemd) -> None:
    systemd.fail(f"Call failed: Unit {UNIT} already exists.")
    settle(tree, Values(cpu_shares=2))
    started, given = systemd.calls
    assert started.startswith("StartTransientUnit")
    assert given.startswith(f"SetUnitProperties sba(sv) {UNIT} true 7 CPUWeight t 1 CPUQuotaPerSecUSec")


def test_systemd_decides_which_controllers_are_enabled_below(
    tree: SystemdTree, systemd: Systemd, tmp_path: Path
) -> None:
    """systemd disables controllers that no child slice needs; a new slice gets all of them."""
    above = Cgroup(path=POD[:-1], values=Values(cpu_shares=2))
    settle(tree, FULL)
    settle(tree, above.values, above.path)
    control = tmp_path / "cgroup/kubepods.slice/kubepods-burstable.slice/cgroup.subtree_control"
    control.write_text("hugetlb")
    assert tree.missing(above) == ()
    settle(tree, FULL, (*above.path, "podu-2"))
    assert {"cpu", "memory", "pids", "hugetlb"} <= set(control.read_text().split())


def test_the_values_of_a_container_are_set_on_its_scope(tree: SystemdTree, systemd: Systemd, tmp_path: Path) -> None:
    """The values are set through systemd, because the container's cgroup is one of its units."""
    settle(tree, FULL)
    pod = next((tmp_path / "cgroup").rglob(UNIT))
    (pod / "cgroup.subtree_control").write_text("memory")
    KernelOfFiles(tmp_path / "cgroup", 2, ("cpu", "memory", "pids", "hugetlb")).make(f"{pod}/docker-c1.scope")
    assert systemd.calls
    one = Cgroup(path=(*POD, "c1"), values=Values(memory_low_bytes=MIB, memory_high_bytes=2 * MIB), is_containers=True)
    for step in tree.missing(one):
        tree.take(step)
    assert systemd.calls == [
        f"SetUnitProperties sba(sv) docker-c1.scope true 1 MemoryLow t {MIB}",
        f"SetUnitProperties sba(sv) docker-c1.scope true 1 MemoryHigh t {2 * MIB}",
    ]
    assert (pod / "docker-c1.scope/memory.high").read_text() == str(2 * MIB)
    assert tree.missing(one) == ()


def test_a_removed_slice_is_stopped(tree: SystemdTree, systemd: Systemd) -> None:
    settle(tree, FULL)
    assert systemd.calls
    tree.remove(POD)
    assert systemd.calls == [f"systemctl stop {UNIT}"]
    assert tree.missing(Cgroup(path=POD, values=FULL))[0].file == ""
    systemd.fail(f"Failed to stop {UNIT}: Unit {UNIT} not loaded.")
    tree.remove(POD)


def test_a_refusal_of_systemd_is_raised(tree: SystemdTree, systemd: Systemd, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd.fail("Call failed: Access denied")
    with pytest.raises(CgroupRefusal, match=r"busctl call .* StartTransientUnit .*: Call failed: Access denied"):
        settle(tree, FULL)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CgroupRefusal, match=r"busctl call: .*No such file"):
        settle(tree, FULL)


def test_unlimited_values_and_zero() -> None:
    assert properties("memory.max", "max") == {"MemoryMax": INFINITY}
    assert properties("memory.limit_in_bytes", "-1") == {"MemoryLimit": INFINITY}
    assert (properties("memory.max", "0"), properties("memory.min", "0")) == ({"MemoryMax": 1}, {"MemoryMin": 0})
    assert properties("cpu.max", "5000 10000") == {"CPUQuotaPerSecUSec": 500_000, "CPUQuotaPeriodUSec": 10_000}
    assert properties("hugetlb.2MB.max", "0") == {}


# -- containers --------------------------------------------------------------------------------------------------------

ID = "c0ffee"
HELD = Values(memory_low_bytes=MIB, memory_high_bytes=2 * MIB, huge_pages=((2 * MIB, 0),))


class Container:
    """The process of a container, in a cgroup that consists of plain files."""

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
        ContainerGroups(self.proc, self.kernel, manager=PATIENT).hold(77, container_id, values)

    def content(self, file: str) -> str:
        return (self.folder / file).read_text()


def test_only_given_values_are_written(tmp_path: Path, systemd: Systemd) -> None:
    one = Container(tmp_path, 2)
    (one.folder / "cpu.max").write_text("50000 100000")
    one.hold()
    found = [one.content(name) for name in ("memory.low", "memory.high", "memory.min", "hugetlb.2MB.max", "cpu.max")]
    assert found == [str(MIB), str(2 * MIB), "0", "0", "50000 100000"]
    writes = one.kernel.writes
    one.hold()
    assert one.kernel.writes == writes
    assert systemd.calls == []


def test_values_of_a_scope_are_also_sent_to_systemd(tmp_path: Path, systemd: Systemd) -> None:
    one = Container(tmp_path, 2, f"docker-{ID}.scope")
    one.hold()
    assert systemd.calls == [
        f"SetUnitProperties sba(sv) docker-{ID}.scope true 2 MemoryLow t {MIB} MemoryHigh t {2 * MIB}"
    ]
    assert one.content("memory.high") == str(2 * MIB)


def test_on_v1_only_huge_pages_are_written(tmp_path: Path) -> None:
    one = Container(tmp_path, 1)
    writes = one.kernel.writes
    one.hold()
    assert (one.content("hugetlb.2MB.limit_in_bytes"), one.kernel.writes) == ("0", writes + 1)


def test_an_ended_container_is_ignored(tmp_path: Path) -> None:
    one = Container(tmp_path, 2)
    writes = one.kernel.writes
    one.hold(container_id="another")
    ContainerGroups(one.proc, one.kernel, manager=PATIENT).hold(78, ID, HELD)
    one.kernel.refuse = lambda _: 2
    one.hold()
    assert one.kernel.writes == writes


def test_a_missing_controller_or_refused_write_is_raised(tmp_path: Path) -> None:
    one = Container(tmp_path, 2)
    (one.folder / "hugetlb.2MB.max").unlink()
    with pytest.raises(CgroupRefusal, match=r"controller hugetlb is missing: cannot write hugetlb\.2MB\.max"):
        one.hold()
    one.kernel.refuse = lambda _: 30
    with pytest.raises(CgroupRefusal, match=r"memory\.low: write 3145728: Read-only file system"):
        one.hold(Values(memory_low_bytes=3 * MIB))
