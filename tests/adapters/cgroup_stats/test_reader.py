"""Resource usage read from the kernel's files; trees of plain files stand in for cgroups of both versions."""

from pathlib import Path

import pytest

from chronolet.adapters.cgroup_stats.files import NO_LIMIT, Files, number, pressure
from chronolet.adapters.cgroup_stats.finder import Finder
from chronolet.adapters.cgroup_stats.hierarchies import Hierarchies
from chronolet.adapters.cgroup_stats.reader import Reader
from chronolet.adapters.machine.net_dev import parsed
from chronolet.ports.machine.usage import Limits, Pressure, Stall, Transfers, Usage
from tests.support.machine.cgroup_trees import ETH0, NET_DEV, CgroupTrees, Kind, write

ID = "ab" * 32
KINDS: tuple[Kind, ...] = ("v1", "v2", "both")


def finder(trees: CgroupTrees, pids: dict[str, int] | None = None, root: tuple[str, ...] = ("kubepods",)) -> Finder:
    return Finder(Hierarchies(trees.proc), root, (pids or {}).__getitem__, trees.proc)


def usage(trees: CgroupTrees, path: str, files: Files | None = None) -> Usage | None:
    reader = Reader(files or Files(), devices=str(trees.proc / "none"))
    return reader.usage(Hierarchies(trees.proc).folders(path))


@pytest.mark.parametrize("kind", KINDS)
def test_both_versions_of_cgroups_yield_the_same_usage(tmp_path: Path, kind: Kind) -> None:
    trees = CgroupTrees(tmp_path, kind)
    pod = trees.pod("u", [ID])
    used = usage(trees, f"{pod}/{ID}")
    assert used is not None
    assert (used.cpu_nanoseconds, used.memory_bytes, used.threads, used.processes) == (5000, 900, 3, 1)
    assert (used.periods, used.throttled_periods, used.throttled_nanoseconds) == (5, 4, 3000)
    assert (used.working_set_bytes, used.rss_bytes, used.cache_bytes, used.swap_bytes) == (800, 300, 250, 40)
    assert (used.most_memory_bytes, used.memory_failures, used.oom_kills) == (1000, 11, 2)
    assert (used.page_faults, used.major_page_faults) == (7, 2)
    assert used.transfers == (Transfers(device="8:0", read_bytes=4096, written_bytes=8192, reads=1, writes=2),)
    shares = 500 if kind == "v2" else 512
    assert used.limits == Limits(cpu_shares=shares, cpu_quota_us=50_000, cpu_period_us=100_000), "the rest has no limit"
    waits = used.pressures
    if kind == "v1":
        assert (waits.cpu, waits.memory, waits.io) == (None, None, None)
    else:
        assert waits.io == Pressure(Stall(0.0, 0.0, 0.0, 3000), Stall(total_microseconds=7))
        assert waits.cpu == waits.memory == waits.io


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_differs_from_no_limit(tmp_path: Path, kind: Kind) -> None:
    trees = CgroupTrees(tmp_path, kind)
    path = trees.pod("u", [ID])
    if kind == "v2":
        trees.file(path, "", "cpu.max").write_text("max 100000\n")
        trees.file(path, "", "memory.max").write_text("4096\n")
    else:
        trees.file(path, "cpu", "cpu.cfs_quota_us").write_text("-1\n")
        trees.file(path, "memory", "memory.limit_in_bytes").write_text("4096\n")
    used = usage(trees, path)
    assert used is not None
    assert (used.limits.cpu_quota_us, used.limits.memory_bytes, used.limits.threads) == (0, 4096, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_optional_files_may_be_absent(tmp_path: Path, kind: Kind) -> None:
    """Swap accounting, PSI, block I/O or the pids controller may be missing; memory.peak exists only from Linux 5.19
    on.
    """
    trees = CgroupTrees(tmp_path, kind)
    path = trees.pod("u", [ID])
    needed = {"cpuacct.usage", "memory.usage_in_bytes", "cpu.stat", "memory.current"}
    for folder in trees.folders(path):
        for file in folder.glob("*.*"):
            if file.name not in needed and file.is_file():
                file.unlink()
    used = usage(trees, path)
    assert used is not None
    assert (used.cpu_nanoseconds, used.memory_bytes, used.working_set_bytes, used.threads) == (5000, 900, 900, 0)
    assert used.transfers == ()
    assert used.pressures.is_calm


@pytest.mark.parametrize("kind", KINDS)
def test_a_removed_cgroup_has_no_usage(tmp_path: Path, kind: Kind) -> None:
    trees = CgroupTrees(tmp_path, kind)
    path = trees.pod("u", [ID])
    trees.end(f"{path}/{ID}")
    assert usage(trees, f"{path}/{ID}") is None
    reader = Reader(Files())
    assert reader.counters(Hierarchies(trees.proc).folders(f"{path}/{ID}")) is None
    assert reader.counters(Hierarchies(trees.proc).folders(path)) == (5000, 900)


@pytest.mark.parametrize(
    ("kind", "controller", "name", "text"),
    [
        ("v1", "cpuacct", "cpuacct.usage", "lots\n"),
        ("v1", "memory", "memory.usage_in_bytes", "\x00\x01"),
        ("v1", "memory", "memory.stat", "total_rss x\n"),
        ("v2", "", "cpu.stat", "usage_usec lots\n"),
        ("v2", "", "memory.current", "\x00\x01"),
        ("v2", "", "memory.stat", "anon x\n"),
        ("v2", "", "memory.max", "4k\n"),
    ],
)
def test_malformed_text_is_an_error(tmp_path: Path, kind: Kind, controller: str, name: str, text: str) -> None:
    trees = CgroupTrees(tmp_path, kind)
    path = trees.pod("u", [ID])
    trees.file(path, controller, name).write_text(text)
    with pytest.raises(ValueError, match="invalid literal"):
        usage(trees, path)


def test_a_truncated_pressure_line_is_an_error() -> None:
    assert pressure(b"some avg10=1.50 avg60=2.00 avg300=3.00 total=4\n").some == Stall(1.5, 2.0, 3.0, 4)
    with pytest.raises(ValueError, match="expected avg10"):
        pressure(b"some avg10=1.50\n")
    assert (number(b"max\n"), number(b"-1\n")) == (NO_LIMIT, -1)


def test_a_long_file_is_read_completely(tmp_path: Path) -> None:
    files, long = Files(), "8:0 Read 1\n" * 20_000
    write(tmp_path / "long", long)
    assert files.read(str(tmp_path / "long")) == long.encode()
    assert files.read(str(tmp_path)) is None, "a folder"
    assert files.read(str(tmp_path / "none")) is None
    assert files.reads == 3


@pytest.mark.parametrize("qos", ["", "burstable", "besteffort"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_container_is_found_below_its_pod_in_any_qos_class(tmp_path: Path, kind: Kind, qos: str) -> None:
    trees = CgroupTrees(tmp_path, kind, root="/above/kubepods")
    path = trees.pod("u-1", [ID], qos=qos)
    found = finder(trees, root=("above", "kubepods")).container("u-1", ID)
    assert found is not None
    assert found.path == f"{path}/{ID}"
    above = finder(trees).pod(found)
    assert above is not None
    assert above.path == path


def test_a_container_is_found_under_the_names_of_systemd(tmp_path: Path) -> None:
    trees = CgroupTrees(tmp_path, "v2")
    path = trees.pod("u-1", [ID], driver="systemd")
    found = finder(trees).container("u-1", ID)
    assert found is not None
    assert found.path == f"{path}/docker-{ID}.scope"
    above = finder(trees).pod(found)
    assert above is not None
    assert above.path == path


@pytest.mark.parametrize("kind", KINDS)
def test_a_container_in_another_cgroup_is_found_by_its_process(tmp_path: Path, kind: Kind) -> None:
    trees = CgroupTrees(tmp_path, kind)
    pid = trees.container(f"/somewhere/{ID}", ID)
    by_process = finder(trees, {ID: pid})
    found = by_process.container("u", ID)
    assert found is not None
    assert found.path == f"/somewhere/{ID}"
    assert by_process.pod(found) is None, "what is above it is no pod's"


def test_the_cgroups_of_docker_are_found_without_the_process(tmp_path: Path) -> None:
    trees = CgroupTrees(tmp_path)
    trees.container(f"/docker/{ID}", ID)
    found = finder(trees).container("u", ID)
    assert found is not None
    assert found.path == f"/docker/{ID}"


def test_a_reused_pid_is_not_mistaken_for_the_container(tmp_path: Path) -> None:
    trees, other = CgroupTrees(tmp_path), "cd" * 32
    pid = trees.container(f"/somewhere/{other}", other)
    assert finder(trees, {ID: pid}).container("u", ID) is None
    assert finder(trees, {ID: 0}).container("u", ID) is None, "it does not run"
    assert finder(trees, {ID: 99_999}).container("u", ID) is None, "another machine's"


def test_a_mounted_part_of_a_hierarchy_suffices(tmp_path: Path) -> None:
    """In a container, the mount shows only the container's own cgroup and those below it."""
    trees = CgroupTrees(tmp_path, mounted_root="/outer")
    trees.cgroup(f"/docker/{ID}")
    folders = Hierarchies(trees.proc).folders(f"/outer/docker/{ID}")
    used = Reader(Files()).usage(folders)
    assert used is not None
    assert used.memory_bytes == 900


def test_without_cgroups_nothing_is_found(tmp_path: Path) -> None:
    none = Hierarchies(tmp_path)
    assert not none
    assert Finder(none, ("kubepods",), {}.__getitem__, tmp_path).container("u", ID) is None


def test_all_counters_of_interfaces_are_read() -> None:
    assert parsed(NET_DEV) == (ETH0,)
    assert parsed("") == ()
