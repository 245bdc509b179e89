"""What the machine, a pod or a container uses: plain records.

Read by the adapters `machine` and `cgroup_stats`, shown by the pages below `node.stats`. Source: cAdvisor's
info/v1/container.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Stall(msgspec.Struct, frozen=True, gc=False):
    """One line of a PSI file. Averages are per cent of the last 10, 60 and 300 seconds."""

    avg10: float = 0.0
    avg60: float = 0.0
    avg300: float = 0.0
    total_microseconds: int = 0


class Pressure(msgspec.Struct, frozen=True):
    """How long some tasks, and all tasks at once, waited for one resource."""

    some: Stall = Stall()
    full: Stall = Stall()

    @property
    def is_calm(self) -> bool:
        """Whether no average has anything left to decay."""
        return not (self.some.avg300 or self.some.avg10 or self.full.avg300 or self.full.avg10)


class Pressures(msgspec.Struct, frozen=True):
    """By resource; None where the kernel has no figures."""

    cpu: Pressure | None = None
    memory: Pressure | None = None
    io: Pressure | None = None

    @property
    def is_calm(self) -> bool:
        return all(one is None or one.is_calm for one in (self.cpu, self.memory, self.io))


class Interface(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What has gone through a network interface so far."""

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
    """What was read from and written to one block device so far. `device` is its file, as /dev/sda."""

    device: str
    read_bytes: int = 0
    written_bytes: int = 0
    reads: int = 0
    writes: int = 0


class Limits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a cgroup is held to; 0 is no limit. `cpu_shares` are in the unit of v1."""

    cpu_shares: int = 0
    cpu_quota_us: int = 0
    cpu_period_us: int = 0
    memory_bytes: int = 0
    memory_reservation_bytes: int = 0
    threads: int = 0


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What is used at the time `at` in milliseconds; counters count from the start of the cgroup or the machine.

    The working set is the memory without the file pages that can be dropped at once. `throttled_nanoseconds` is time
    spent held back by the CPU quota, `memory_failures` counts how often the memory limit was reached. `interfaces` are
    those of the network namespace.
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
    """What a folder tree holds: allocated bytes and inodes, counted `at` that time in milliseconds."""

    at: int
    used_bytes: int
    inodes: int


class FileSystem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One mounted file system. `device` is its source, as /dev/sda1."""

    device: str
    capacity_bytes: int
    available_bytes: int
    inodes: int
    inodes_free: int
