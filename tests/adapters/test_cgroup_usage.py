"""Usage from the kernel's files: written trees of both kinds of cgroup."""

from pathlib import Path

import pytest

from chronolet.adapters import cgroup_usage
from chronolet.adapters.cgroup_usage import CgroupUsage
from chronolet.adapters.fake_runtime import FakeRuntime
from chronolet.ports.runtime import Interface, Refusal, SandboxSpec

ID = "ab" * 32
NET_DEV = """\
Inter-|   Receive                         |  Transmit
 face |bytes packets errs drop fifo ...    |bytes ...
    lo:     9       9    0    0    0     0          0         0        9       9    0    0    0     0       0          0
  eth0:     1       2    3    0    0     0          0         0        4       5    6    0    0     0       0          0
"""


class Kernel:
    """A /proc and a cgroup tree, written by hand."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.tree = folder / "proc", folder / "tree"
        self.write(self.proc / "7/net/dev", NET_DEV)

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def v1(self, root: str = "/", below: str = f"docker/{ID}") -> None:
        """As a kernel with a hierarchy for each controller, and an idle one of v2."""
        mounts = [
            f"1 0 0:1 {root} {self.tree}/{name} rw,relatime shared:9 - cgroup cgroup rw,{name}"
            for name in ("memory", "cpuacct", "pids")
        ]
        idle = f"1 0 0:1 / {self.tree}/unified rw - cgroup2 cgroup rw"
        self.write(self.proc / "self/mountinfo", "\n".join([idle, *mounts]))
        path = f"{root.rstrip('/')}/{below}"
        groups = [f"{number}:{name}:{path}" for number, name in enumerate(("memory", "cpuacct", "pids"), 1)]
        self.write(self.proc / "7/cgroup", "\n".join([*groups, "9:name=systemd:/", "0::/"]))
        self.v1_files(below, cpu=5000)

    def v1_files(self, below: str, cpu: int) -> None:
        memory = self.tree / "memory" / below
        self.write(memory / "memory.usage_in_bytes", "900\n")
        self.write(memory / "memory.limit_in_bytes", "9223372036854771712\n")
        self.write(
            memory / "memory.stat",
            "rss 1\ntotal_rss 300\ntotal_inactive_file 100\ntotal_pgfault 7\ntotal_pgmajfault 2\n",
        )
        self.write(self.tree / "cpuacct" / below / "cpuacct.usage", f"{cpu}\n")
        self.write(self.tree / "pids" / below / "pids.current", "3\n")

    def v2(self, above: str = "system.slice") -> None:
        """As a kernel with one hierarchy, under systemd's names."""
        group = f"/{above}/docker-{ID}.scope"
        self.write(self.proc / "self/mountinfo", f"1 0 0:1 / {self.tree} rw - cgroup2 cgroup2 rw,nsdelegate\n")
        self.write(self.proc / "7/cgroup", f"0::{group}\n")
        self.v2_files(group.lstrip("/"), cpu=5)

    def v2_files(self, below: str, cpu: int) -> None:
        folder = self.tree / below
        self.write(folder / "memory.current", "900\n")
        self.write(folder / "memory.max", "4096\n")
        self.write(folder / "memory.stat", "anon 300\ninactive_file 100\npgfault 7\npgmajfault 2\n")
        self.write(folder / "cpu.stat", f"usage_usec {cpu}\nuser_usec 1\n")
        self.write(folder / "pids.current", "3\n")


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


@pytest.mark.parametrize("kind", ["v1", "v2", "a part of v1"])
def test_both_kinds_of_cgroups_say_the_same(kernel: Kernel, kind: str) -> None:
    if kind == "v2":
        kernel.v2()
    else:
        kernel.v1(root="/outer" if kind == "a part of v1" else "/")
    used = cgroup_usage.read(7, ID, kernel.proc)
    assert (used.cpu_nanoseconds, used.memory_bytes, used.processes) == (5000, 900, 3)
    assert (used.working_set_bytes, used.rss_bytes) == (800, 300)
    assert (used.page_faults, used.major_page_faults) == (7, 2)
    assert used.memory_limit_bytes == (4096 if kind == "v2" else 0), "one that nobody set is none"
    assert used.interfaces == (Interface(name="eth0", rx_bytes=1, rx_errors=3, tx_bytes=4, tx_errors=6),)


@pytest.mark.parametrize("version", [1, 2])
def test_a_pods_cgroup_tells_of_those_too_that_have_ended(kernel: Kernel, version: int) -> None:
    if version == 1:
        kernel.v1(below=f"kubepods/podu/{ID}")
        kernel.v1_files("kubepods/podu", cpu=9000)
    else:
        kernel.v2("kubepods.slice/kubepods-podu.slice")
        kernel.v2_files("kubepods.slice/kubepods-podu.slice", cpu=9)
    around = cgroup_usage.read_around(7, ID, kernel.proc)
    assert around is not None
    assert (around.cpu_nanoseconds, around.working_set_bytes, around.interfaces) == (9000, 800, ())
    assert cgroup_usage.read(7, ID, kernel.proc).cpu_nanoseconds == 5000


def test_what_is_above_a_container_of_no_pod_is_not_told(kernel: Kernel) -> None:
    kernel.v1()
    assert cgroup_usage.read_around(7, ID, kernel.proc) is None


def test_a_process_that_has_got_the_pid_of_a_dead_one_is_not_taken_for_it(kernel: Kernel) -> None:
    kernel.v1(below="docker/" + "cd" * 32)
    with pytest.raises(ValueError, match="not in a cgroup of"):
        cgroup_usage.read(7, ID, kernel.proc)


def test_where_the_files_lead_nowhere_the_runtime_is_asked(tmp_path: Path) -> None:
    fake = FakeRuntime(images=["i"])
    box = fake.create_sandbox(SandboxSpec(name="box", labels={}, image="i", hostname="h"))
    usage = CgroupUsage(fake, tmp_path)
    assert usage.of(box) is None, "it does not run yet"
    assert usage.around(box) is None
    fake.start(box)
    for _ in range(2):
        assert usage.of(box) is not None
        assert usage.around(box) is None
    assert (fake.calls.count("inspect"), fake.calls.count("usage")) == (3, 2), "its pid is asked for anew"
    fake.refuse("inspect", Refusal("timeout", "no answer"))
    with pytest.raises(Refusal):
        usage.of(box)
    assert usage.of("0" * 64) is None
