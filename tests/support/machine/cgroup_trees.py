"""/proc and cgroup hierarchies as plain files, for tests of usage: v1, v2, or v1 with pressure figures in v2.

Input: a folder. Output: files as the kernel writes them, which a test may change or remove.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from chronolet.ports.machine.usage import Interface

Kind = Literal["v1", "v2", "both"]

V1 = ("memory", "cpu", "cpuacct", "pids", "blkio")
UNLIMITED = "9223372036854771712"
NET_DEV = """\
Inter-|   Receive                         |  Transmit
 face |bytes packets errs drop fifo ...    |bytes ...
    lo:     9       9    0    0    0     0          0         0        9       9    0    0    0     0       0          0
  eth0:     1       2    3    4    0     0          0         0        5       6    7    8    0     0       0          0
"""
ETH0 = Interface(
    name="eth0",
    rx_bytes=1,
    rx_packets=2,
    rx_errors=3,
    rx_dropped=4,
    tx_bytes=5,
    tx_packets=6,
    tx_errors=7,
    tx_dropped=8,
)
"""The interface in NET_DEV."""
_PRESSURE = "some avg10={0} avg60=0.00 avg300={0} total={1}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"


class CgroupTrees:
    """Simulates /proc and the cgroup hierarchies with files in `folder`. `root` is the cgroup path above all pods."""

    def __init__(self, folder: Path, kind: Kind = "v1", *, root: str = "/kubepods", mounted_root: str = "/") -> None:
        self.kind, self.root = kind, root
        self.proc, self.tree = folder / "proc", folder / "tree"
        self._pid = 100
        mounts = []
        if kind != "v2":
            mounts += [
                f"1 0 0:1 {mounted_root} {self.tree}/{name} rw,relatime shared:9 - cgroup cgroup rw,{name}"
                for name in V1
            ]
        if kind != "v1":
            mounts.append(f"1 0 0:1 {mounted_root} {self.tree}/unified rw - cgroup2 cgroup rw,nsdelegate")
        write(self.proc / "self/mountinfo", "\n".join(mounts))

    def pod(self, uid: str, ids: Sequence[str], *, qos: str = "burstable", driver: str = "cgroupfs") -> str:
        """Create the cgroups of a pod and its containers; return the path of the pod's cgroup."""
        path = f"{self.root}/{qos}/pod{uid}" if qos else f"{self.root}/pod{uid}"
        if driver == "systemd":
            path = f"{self.root}.slice/kubepods-{qos}.slice/kubepods-{qos}-pod{uid.replace('-', '_')}.slice"
        self.cgroup(path)
        for one in ids:
            self.container(f"{path}/docker-{one}.scope" if driver == "systemd" else f"{path}/{one}", one)
        return path

    def container(self, path: str, container_id: str) -> int:
        """Create a container's cgroup with one process; return its pid."""
        self._pid += 1
        self.cgroup(path)
        for folder in self.folders(path):
            write(folder / "cgroup.procs", f"{self._pid}\n")
        write(self.proc / str(self._pid) / "net/dev", NET_DEV)
        lines = [f"{number}:{name}:{path}" for number, name in enumerate(V1, 1)] if self.kind != "v2" else []
        write(self.proc / str(self._pid) / "cgroup", "\n".join([*lines, f"0::{path}"]))
        return self._pid

    def cgroup(self, path: str, *, cpu: int = 5_000, memory: int = 900) -> None:
        """Create one cgroup that has used `cpu` nanoseconds of CPU time and `memory` bytes."""
        if self.kind != "v2":
            self._v1(path.lstrip("/"), cpu, memory)
        if self.kind == "v2":
            self._v2(path.lstrip("/"), cpu, memory)
        if self.kind != "v1":
            for resource in ("cpu", "memory", "io"):
                write(
                    self.tree / "unified" / path.lstrip("/") / f"{resource}.pressure", _PRESSURE.format("0.00", 3_000)
                )

    def busy(self, path: str, *, cpu: int, memory: int = 900) -> None:
        """Set the usage of a cgroup so far: `cpu` in nanoseconds, `memory` in bytes."""
        below = path.lstrip("/")
        if self.kind == "v2":
            write(self.tree / "unified" / below / "cpu.stat", _v2_cpu(cpu))
            write(self.tree / "unified" / below / "memory.current", f"{memory}\n")
        else:
            write(self.tree / "cpuacct" / below / "cpuacct.usage", f"{cpu}\n")
            write(self.tree / "memory" / below / "memory.usage_in_bytes", f"{memory}\n")

    def file(self, path: str, controller: str, name: str) -> Path:
        """Return the path of one file of a cgroup."""
        return self.tree / ("unified" if self.kind == "v2" else controller) / path.lstrip("/") / name

    def folders(self, path: str) -> list[Path]:
        names = ("unified",) if self.kind == "v2" else V1 if self.kind == "v1" else (*V1, "unified")
        return [self.tree / name / path.lstrip("/") for name in names]

    def end(self, path: str) -> None:
        """Remove the cgroup, as happens when its container ends."""
        for folder in self.folders(path):
            shutil.rmtree(folder)

    def _v1(self, below: str, cpu: int, memory: int) -> None:
        own = {name: self.tree / name / below for name in V1}
        write(own["memory"] / "memory.usage_in_bytes", f"{memory}\n")
        write(own["memory"] / "memory.max_usage_in_bytes", "1000\n")
        write(own["memory"] / "memory.limit_in_bytes", f"{UNLIMITED}\n")
        write(own["memory"] / "memory.soft_limit_in_bytes", f"{UNLIMITED}\n")
        write(own["memory"] / "memory.failcnt", "11\n")
        write(own["memory"] / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
        write(
            own["memory"] / "memory.stat",
            "cache 1\nrss 1\ntotal_cache 250\ntotal_rss 300\ntotal_inactive_file 100\ntotal_swap 40\n"
            "total_pgfault 7\ntotal_pgmajfault 2\n",
        )
        write(own["cpuacct"] / "cpuacct.usage", f"{cpu}\n")
        write(own["cpu"] / "cpu.stat", "nr_periods 5\nnr_throttled 4\nthrottled_time 3000\nnr_bursts 0\n")
        write(own["cpu"] / "cpu.shares", "512\n")
        write(own["cpu"] / "cpu.cfs_quota_us", "50000\n")
        write(own["cpu"] / "cpu.cfs_period_us", "100000\n")
        write(own["pids"] / "pids.current", "3\n")
        write(own["pids"] / "pids.max", "max\n")
        blkio = "8:0 Read {}\n8:0 Write {}\n8:0 Sync 9\n8:0 Total 9\nTotal 9\n"
        write(own["blkio"] / "blkio.throttle.io_service_bytes_recursive", blkio.format(4096, 8192))
        write(own["blkio"] / "blkio.throttle.io_serviced_recursive", blkio.format(1, 2))

    def _v2(self, below: str, cpu: int, memory: int) -> None:
        own = self.tree / "unified" / below
        write(own / "cpu.stat", _v2_cpu(cpu))
        write(own / "cpu.weight", "20\n")
        write(own / "cpu.max", "50000 100000\n")
        write(own / "memory.current", f"{memory}\n")
        write(own / "memory.peak", "1000\n")
        write(own / "memory.max", "max\n")
        write(own / "memory.low", "0\n")
        write(own / "memory.swap.current", "40\n")
        write(own / "memory.stat", "anon 300\nfile 250\ninactive_file 100\npgfault 7\npgmajfault 2\n")
        write(own / "memory.events", "low 0\nhigh 0\nmax 11\noom 3\noom_kill 2\n")
        write(own / "pids.current", "3\n")
        write(own / "pids.max", "max\n")
        write(own / "io.stat", "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n")


def _v2_cpu(nanoseconds: int) -> str:
    return f"usage_usec {nanoseconds // 1000}\nuser_usec 1\nnr_periods 5\nnr_throttled 4\nthrottled_usec 3\n"


def write(path: Path, text: str) -> None:
    """Write a file, and create the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
