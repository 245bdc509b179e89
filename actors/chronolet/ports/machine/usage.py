"""Plain records of the resource usage of a machine, pod or container.

The adapters `machine` and `cgroup_stats` create them, and the pages in `node.stats` show them. Source: cAdvisor's
info/v1/container.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Stall(msgspec.Struct, frozen=True, gc=False):
    """One line of a PSI file. `avg10`, `avg60` and `avg300`: percentages, averaged over that many seconds."""

    avg10: float = 0.0
    avg60: float = 0.0
    avg300: float = 0.0
    total_microseconds: int = 0


class Pressure(msgspec.Struct, frozen=True):
    """Stalls on one resource. `some`: at least one task was stalled; `full`: all tasks were, at the same time."""

    some: Stall = Stall()
    full: Stall = Stall()

    @property
    def is_calm(self) -> bool:
        """Whether the 10 s and 300 s averages are zero, so that no average changes until the next stall."""
        return not (self.some.avg300 or self.some.avg10 or self.full.avg300 or self.full.avg10)


class Pressures(msgspec.Struct, frozen=True):
    """The pressure on each resource; None if the kernel does not report it."""

    cpu: Pressure | None = None
    memory: Pressure | None = None
    io: Pressure | None = None

    @property
    def is_calm(self) -> bool:
        return all(one is None or one.is_calm for one in (self.cpu, self.memory, self.io))


class Interface(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Traffic counters of a network interface."""

    name: str
    rx_bytes: int = 0
    rx_packets: int = 0
    rx_errors: int = 0
    rx_dropped: int = 0
    tx_bytes: int = 0
    tx_packets: int = 0
    tx_errors: int = 0
    tx_dropped: int = 0


class Transfers(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """I/O counters of one block device. `device`: its file, such as /dev/sda."""

    device: str
    read_bytes: int = 0
    written_bytes: int = 0
    reads: int = 0
    writes: int = 0


class Limits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The limits of a cgroup; 0 means no limit. `cpu_shares` has the unit of cgroup v1."""

    cpu_shares: int = 0
    cpu_quota_us: int = 0
    cpu_period_us: int = 0
    memory_bytes: int = 0
    memory_reservation_bytes: int = 0
    threads: int = 0


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage at the time `at` (milliseconds). Counters start at 0 when the cgroup is created or the machine boots.

    `working_set_bytes`: memory without the file pages that the kernel can drop immediately. `throttled_nanoseconds`:
    time throttled by the CPU quota. `memory_failures`: how often the memory limit was reached. `interfaces`: the
    interfaces of the network namespace.
    """

    at: int
    cpu_nanoseconds: int = 0
    periods: int = 0
    throttled_periods: int = 0
    throttled_nanoseconds: int = 0
    memory_bytes: int = 0
    most_memory_bytes: int = 0
    working_set_bytes: int = 0
    rss_bytes: int = 0
    cache_bytes: int = 0
    swap_bytes: int = 0
    memory_failures: int = 0
    oom_kills: int = 0
    page_faults: int = 0
    major_page_faults: int = 0
    threads: int = 0
    processes: int = 0
    limits: Limits = Limits()
    pressures: Pressures = Pressures()
    transfers: Sequence[Transfers] = ()
    interfaces: Sequence[Interface] = ()


class DiskUse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Disk usage of a folder tree: allocated bytes and inodes, counted at the time `at` (milliseconds)."""

    at: int
    used_bytes: int
    inodes: int


class FileSystem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One mounted file system. `device`: its source, such as /dev/sda1."""

    device: str
    capacity_bytes: int
    available_bytes: int
    inodes: int
    inodes_free: int
