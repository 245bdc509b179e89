"""The machine's own resource usage, from /proc.

Input: /proc, the state folder. Output: `Machine`. Next: the page /stats/summary. Corresponds to cAdvisor's root
container and machine information, as the kubelet's summary shows them.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from chronolet.adapters.cgroup_stats.files import pressure
from chronolet.adapters.machine import net_dev
from chronolet.ports.machine.usage import Limits, Pressure, Pressures, Usage


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The node's resource usage at one moment. Times are in milliseconds."""

    usage: Usage
    booted_at: int
    default_interface: str
    most_processes: int
    capacity_bytes: int
    available_bytes: int
    inodes: int
    inodes_free: int
    """`capacity_bytes` to `inodes_free` describe the file system of the state folder."""
    processors: int = 0


def look(folder: Path, proc: Path = Path("/proc")) -> Machine:
    """Measure the machine's resource usage. Raises OSError if /proc does not have the expected files."""
    disk = os.statvfs(folder)
    return Machine(
        usage=_usage(proc),
        booted_at=_field(proc / "stat", "btime") * 1000,
        default_interface=_default_interface(proc),
        most_processes=int((proc / "sys/kernel/pid_max").read_text()),
        capacity_bytes=disk.f_blocks * disk.f_frsize,
        available_bytes=disk.f_bavail * disk.f_frsize,
        inodes=disk.f_files,
        inodes_free=disk.f_ffree,
        processors=os.cpu_count() or 1,
    )


def _usage(proc: Path) -> Usage:
    memory = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in _lines(proc / "meminfo")}
    used = memory["MemTotal"] - memory["MemFree"]
    return Usage(
        at=time.time_ns() // 1_000_000,
        cpu_nanoseconds=_busy_nanoseconds(proc),
        memory_bytes=used,
        limits=Limits(memory_bytes=memory["MemTotal"]),
        working_set_bytes=max(0, used - memory.get("Inactive(file)", 0)),
        rss_bytes=memory.get("AnonPages", 0),
        page_faults=_field(proc / "vmstat", "pgfault"),
        major_page_faults=_field(proc / "vmstat", "pgmajfault"),
        swap_bytes=memory.get("SwapTotal", 0) - memory.get("SwapFree", 0),
        cache_bytes=memory.get("Cached", 0),
        pressures=Pressures(*(_pressure(proc, name) for name in ("cpu", "memory", "io"))),
        threads=int((proc / "loadavg").read_text().split()[3].partition("/")[2]),
        interfaces=net_dev.interfaces(proc / "net" / "dev"),
    )


def _pressure(proc: Path, resource: str) -> Pressure | None:
    """Return the pressure figures of a resource; None if the kernel does not record them."""
    try:
        return pressure((proc / "pressure" / resource).read_bytes())
    except OSError:
        return None


def _busy_nanoseconds(proc: Path) -> int:
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, _lines(proc / "stat")[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) * (1_000_000_000 // os.sysconf("SC_CLK_TCK"))


def _default_interface(proc: Path) -> str:
    """Return the interface of the default route; empty if there is none."""
    routes = (line.split() for line in _lines(proc / "net/route")[1:])
    return next((words[0] for words in routes if words[1] == "00000000"), "")


def _field(path: Path, name: str) -> int:
    return next((int(line.split()[1]) for line in _lines(path) if line.split()[0] == name), 0)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()
