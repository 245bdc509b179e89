"""The contract of a cgroup tree: on plain files and on the machine's cgroups, with the names of both drivers."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from chronolet.adapters.cgroups import KernelOfFiles, LinuxCgroups
from chronolet.ports.machine.cgroups import CgroupRefusal, Cgroups, CgroupTree, Driver
from chronolet.rules.resources.cgroups import Cgroup, Values
from chronolet.rules.resources.cgroups import Path as CgroupPath
from tests.support import scratch
from tests.support.counting import counted
from tests.support.docker.engine import DRIVER
from tests.support.scratch import HANG_SECONDS

MIB = 1 << 20


class World(NamedTuple):
    """A machine with cgroups. `top` is the test's own cgroup; `files` is None if the cgroups are the kernel's."""

    cgroups: Cgroups
    driver: Driver
    top: str
    files: KernelOfFiles | None

    @property
    def root(self) -> CgroupPath:
        return (self.top, "kubepods")

    def tree(self) -> CgroupTree:
        found = self.cgroups.tree(self.driver)
        assert found is not None
        return found

    def path(self, *names: str) -> CgroupPath:
        return (*self.root, *names)


FORMS = ["v1", "v1-systemd", "v2", "v2-systemd", "machine", *(["machine-systemd"] if DRIVER == "systemd" else [])]


@pytest.fixture(params=FORMS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    top = f"chronolet-cg-{os.getpid()}"
    if request.param.startswith("machine"):
        cgroups = LinuxCgroups(tmp_path)
        driver: Driver = "systemd" if request.param == "machine-systemd" else "cgroupfs"
        assert not cgroups.why_not()
        try:
            yield World(cgroups, driver, top, None)
        finally:
            tree = cgroups.tree(driver)
            assert tree is not None
            tree.kill((top,))
            scratch.wait_until(lambda: not tree.processes((top,)), "the end of all processes of the cgroup")
            tree.remove((top,))
        return
    version, _, names = request.param.partition("-")
    files = KernelOfFiles(tmp_path / "cgroup", int(version[1]), ("cpu", "memory", "pids", "hugetlb"))
    yield World(files, "systemd" if names else "cgroupfs", top, files)


FULL = Values(cpu_shares=512, cpu_quota_us=50_000, cpu_period_us=100_000, memory_limit_bytes=64 * MIB + 17, pids=30)


def settle(tree: CgroupTree, cgroup: Cgroup) -> int:
    """Take all steps that the cgroup still needs; return their number."""
    steps = tree.missing(cgroup)
    for step in steps:
        tree.take(step)
    return len(steps)


def above(world: World) -> CgroupTree:
    """Return the tree after creating the cgroup above all pods and the cgroups of two QoS classes."""
    tree = world.tree()
    tree.claim(world.root, "node")
    for path in (world.root, world.path("burstable"), world.path("besteffort")):
        assert settle(tree, Cgroup(path=path, values=Values(cpu_shares=1024)))
    return tree


def test_after_a_cgroup_is_created_nothing_is_missing(world: World) -> None:
    tree = above(world)
    cgroup = Cgroup(path=world.path("burstable", "podu-1"), values=FULL)
    assert settle(tree, cgroup) > 3
    assert tree.missing(cgroup) == ()
    assert tree.missing(Cgroup(path=world.path("burstable"), values=Values(cpu_shares=1024))) == ()
    assert all(found == wanted for found, wanted in tree.actual(cgroup).values())
    assert tree.pods(world.root) == (world.path("burstable", "podu-1"),)
    assert tree.memory_used(cgroup.path) == 0


def test_a_removed_limit_becomes_unlimited(world: World) -> None:
    tree = above(world)
    path = world.path("podu")
    settle(tree, Cgroup(path=path, values=FULL))
    free = Cgroup(path=path, values=Values(cpu_shares=2))
    assert settle(tree, free)
    assert tree.missing(free) == ()
    again = Cgroup(path=path, values=FULL)
    assert {step.file for step in tree.missing(again)} >= {"pids.max"}


def test_a_value_changed_by_hand_is_detected(world: World) -> None:
    tree = above(world)
    cgroup = Cgroup(path=world.path("podu"), values=FULL)
    settle(tree, cgroup)
    (step,) = tree.missing(Cgroup(path=cgroup.path, values=Values(**{**_dict(FULL), "pids": 31})))
    Path(step.folder, step.file).write_text("77")
    (found,) = tree.missing(cgroup)
    assert (found.file, found.found, found.wanted) == ("pids.max", "77", "30")
    assert tree.actual(cgroup)["pids.max"] == ("77", "30")
    tree.take(found)
    assert tree.missing(cgroup) == ()


def _dict(values: Values) -> dict[str, int | None]:
    return {name: getattr(values, name) for name in values.__struct_fields__ if name != "huge_pages"}


def test_a_removed_cgroup_is_detected(world: World) -> None:
    tree = above(world)
    cgroup = Cgroup(path=world.path("podu"), values=FULL)
    count = settle(tree, cgroup)
    tree.remove(cgroup.path)
    tree.remove(cgroup.path)
    assert tree.pods(world.root) == ()
    assert all(content == "" for content, _ in tree.actual(cgroup).values())
    assert settle(tree, cgroup) == count


def test_cgroups_below_are_removed_once_they_are_empty(world: World) -> None:
    tree = above(world)
    cgroup = Cgroup(path=world.path("besteffort", "podu"), values=Values(cpu_shares=2))
    settle(tree, cgroup)
    settle(tree, Cgroup(path=(*cgroup.path, "podinner"), values=Values(cpu_shares=2)))
    assert tree.processes(cgroup.path) == ()
    process = subprocess.Popen(["sleep", "3600"])
    try:
        inner = next(iter(tree.missing(Cgroup(path=(*cgroup.path, "podinner"), values=FULL)))).folder
        Path(inner, "cgroup.procs").write_text(f"{process.pid}\n")
        assert tree.processes(cgroup.path) == (process.pid,)
        with pytest.raises(CgroupRefusal, match="podinner"):
            tree.remove(cgroup.path)
        tree.kill(cgroup.path)
        assert process.wait(HANG_SECONDS) == -signal.SIGKILL
        if world.files is not None:
            Path(inner, "cgroup.procs").write_text("")
        scratch.wait_until(lambda: not tree.processes(cgroup.path), "the cgroup to be empty")
        tree.remove(cgroup.path)
    finally:
        process.kill()
        process.wait()
    assert tree.pods(world.root) == ()


def test_the_cgroup_of_a_container_gets_the_given_values_and_is_never_created(world: World) -> None:
    """Only the runtime creates this cgroup, and values that are not given stay as the runtime has set them."""
    tree = above(world)
    pod = Cgroup(path=world.path("burstable", "podu"), values=Values(**_dict(FULL), huge_pages=((2 * MIB, 4 * MIB),)))
    settle(tree, pod)
    values = Values(memory_low_bytes=MIB, memory_high_bytes=2 * MIB, huge_pages=((2 * MIB, 4 * MIB),))
    one = Cgroup(path=(*pod.path, "c" * 64), values=values, is_containers=True)
    assert tree.missing(one) == ()
    wanted = created_by_the_runtime(world, one)
    assert {step.file for step in tree.missing(one)} == set(wanted)
    assert settle(tree, one) == len(wanted)
    assert tree.missing(one) == ()
    assert {file: content for file, (content, _) in tree.actual(one).items() if content} == wanted
    assert tree.missing(Cgroup(path=one.path, is_containers=True)) == ()
    assert tree.missing(pod) == ()
    assert tree.pods(world.root) == (pod.path,)


def created_by_the_runtime(world: World, one: Cgroup) -> dict[str, str]:
    """Create the cgroup under the name that Docker uses; return the files to be written there, with their content."""
    tree = world.tree()
    if world.files is None and (tree.version == 1 or world.driver == "systemd"):
        return {}  # v1 has no such file, or only systemd may create the cgroup
    pages = Values(**{**_dict(FULL), "pids": 31}, huge_pages=((2 * MIB, MIB),))
    name = f"docker-{one.path[-1]}.scope" if world.driver == "systemd" else one.path[-1]
    for folder in {step.folder for step in tree.missing(Cgroup(path=one.path[:-1], values=pages))}:
        if tree.version == 2:
            Path(folder, "cgroup.subtree_control").write_text("+memory" if world.files is None else "memory hugetlb")
        Path(folder, name).mkdir() if world.files is None else world.files.make(f"{folder}/{name}")
    if tree.version == 1:
        return {"hugetlb.2MB.limit_in_bytes": str(4 * MIB)}
    memory = {"memory.low": str(MIB), "memory.high": str(2 * MIB)}
    return memory if world.files is None else memory | {"hugetlb.2MB.max": str(4 * MIB)}


def test_a_tree_is_claimed_again_by_its_node_only(world: World) -> None:
    tree = above(world)
    world.tree().claim(world.root, "node")
    with pytest.raises(CgroupRefusal, match="belongs to chronolet's node node: choose another --cgroup-root"):
        tree.claim(world.root, "other")
    tree.claim((world.top, "another"), "other")


def test_an_unmarked_tree_with_cgroups_in_it_is_foreign(world: World) -> None:
    tree = world.tree()
    settle(tree, Cgroup(path=world.root, values=Values(cpu_shares=2)))
    tree.claim(world.root, "node")
    foreign = (world.top, "theirs")
    settle(tree, Cgroup(path=foreign, values=Values(cpu_shares=2)))
    settle(tree, Cgroup(path=(*foreign, "burstable"), values=Values(cpu_shares=2)))
    with pytest.raises(CgroupRefusal, match="created by another program, such as a kubelet"):
        tree.claim(foreign, "node")


def test_our_tree_recreated_by_another_program_is_marked_again(world: World) -> None:
    tree = above(world)
    tree.remove(world.root)
    maker = world.tree() if world.files is None else world.files.tree(world.driver)
    assert maker is not None
    top = Cgroup(path=world.root, values=Values(cpu_shares=1024))
    steps = tree.missing(top)
    for folder in {step.folder for step in steps}:
        Path(folder).mkdir() if world.files is None else world.files.make(folder)
    assert settle(tree, top)
    assert tree.missing(top) == ()
    settle(tree, Cgroup(path=world.path("burstable"), values=Values(cpu_shares=2)))
    tree.claim(world.root, "node")


def test_110_unchanged_pods_cost_a_few_reads_each(world: World) -> None:
    tree = above(world)
    pods = [Cgroup(path=world.path("burstable", f"podu{number}"), values=FULL) for number in range(110)]
    for one in pods:
        settle(tree, one)
    if world.files is not None and tree.version == 2:
        held = Values(memory_low_bytes=MIB, memory_high_bytes=2 * MIB)
        containers = [Cgroup(path=(*one.path, "c" * 64), values=held, is_containers=True) for one in pods]
        for one in containers:
            created_by_the_runtime(world, one)
            assert settle(tree, one) == 2
        pods += containers
    writes = world.files.writes if world.files else 0
    looked = counted(lambda: (any(tree.missing(one) for one in pods), len(tree.pods(world.root))))
    assert looked.answer == (False, 110)
    assert not world.files or world.files.writes == writes
    assert len(pods) <= looked.system["open"] <= 5 * len(pods), looked.system
    assert looked.python <= 50 * len(pods), looked.python


# -- on plain files only ---------------------------------------------------------------------------------------------


@pytest.fixture(params=[1, 2])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> KernelOfFiles:
    return KernelOfFiles(tmp_path / "cgroup", request.param, ("cpu", "memory", "pids", "hugetlb"))


def test_a_refusal_names_file_and_value(files: KernelOfFiles) -> None:
    tree = files.tree("cgroupfs")
    assert tree is not None
    cgroup = Cgroup(path=("kubepods",), values=FULL)
    settle(tree, cgroup)
    files.refuse = lambda _: errno.EROFS
    with pytest.raises(CgroupRefusal, match=r"pids\.max: write 31: Read-only file system"):
        settle(tree, Cgroup(path=("kubepods",), values=Values(**{**_dict(FULL), "pids": 31})))
    with pytest.raises(CgroupRefusal, match="podx: Read-only file system"):
        settle(tree, Cgroup(path=("kubepods", "podx"), values=FULL))
    with pytest.raises(CgroupRefusal, match="kubepods: remove: Read-only file system"):
        tree.remove(("kubepods",))


def test_limits_of_huge_pages_are_written(files: KernelOfFiles) -> None:
    tree = files.tree("cgroupfs")
    assert tree is not None
    values = Values(cpu_shares=2, huge_pages=((2 * MIB, 4 * MIB), (1 << 30, 1 << 62)))
    cgroup = Cgroup(path=("kubepods",), values=values)
    settle(tree, cgroup)
    assert tree.missing(cgroup) == ()
    assert "hugetlb.2MB" in " ".join(tree.actual(cgroup))


def test_a_missing_controller_is_reported_and_skipped(tmp_path: Path) -> None:
    for version in (1, 2):
        found = KernelOfFiles(tmp_path / str(version), version, ("memory",)).tree("cgroupfs")
        assert found is not None
        assert [one.split(":")[0] for one in found.lost] == ["controller cpu is missing", "controller pids is missing"]
        cgroup = Cgroup(path=("kubepods",), values=FULL)
        settle(found, cgroup)
        assert found.missing(cgroup) == ()
        assert {name.split(".")[0] for name in found.actual(cgroup)} <= {"memory", "cgroup"}


def test_memory_is_protected_on_v2(tmp_path: Path) -> None:
    tree = KernelOfFiles(tmp_path / "cgroup", 2).tree("systemd")
    assert tree is not None
    kept = Values(cpu_shares=2, memory_min_bytes=MIB, memory_low_bytes=2 * MIB, memory_high_bytes=3 * MIB)
    cgroup = Cgroup(path=("kubepods",), values=kept)
    settle(tree, cgroup)
    folder = tmp_path / "cgroup/kubepods.slice"
    names = ("memory.min", "memory.low", "memory.high", "cpu.weight", "cpu.max")
    assert [(folder / name).read_text() for name in names] == [str(MIB), str(2 * MIB), str(3 * MIB), "1", "max 100000"]


def test_the_reason_why_cgroups_are_unusable(tmp_path: Path) -> None:
    def linux(*lines: str) -> LinuxCgroups:
        (tmp_path / "self").mkdir(exist_ok=True)
        (tmp_path / "self/mountinfo").write_text("\n".join(lines))
        return LinuxCgroups(tmp_path, tmp_path)

    assert linux("1 0 0:1 / / rw - ext4 x rw").why_not() == "no cgroups are mounted"
    read_only = linux(f"1 0 0:1 / {tmp_path} ro - cgroup2 cgroup rw")
    assert read_only.why_not() == f"{tmp_path} is mounted read-only"
    assert read_only.tree("cgroupfs") is None
    assert linux(f"1 0 0:1 / {tmp_path} rw - cgroup2 cgroup rw").tree("") is None
    assert linux("1 0 0:1 / /nowhere rw - cgroup2 cgroup rw").why_not() == "no permission to write to /nowhere"
