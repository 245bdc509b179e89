"""Read the resource usage of one cgroup, v1 or v2.

Input: `Folders`. Output: `Usage`, or None if the cgroup no longer exists. Next: `node.stats`. Corresponds to cAdvisor's
container/libcontainer/handler.go (setCPUStats, setMemoryStats, setThreadsStats), container/common/helpers.go (GetSpec).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from msgspec.structs import replace

from chronolet.adapters.cgroup_stats.files import NO_LIMIT, Files, limit, number, pairs
from chronolet.adapters.cgroup_stats.hierarchies import Folders
from chronolet.ports.machine.usage import Limits, Pressure, Pressures, Transfers, Usage
from chronolet.rules.resources.cgroups import shares_of_weight

_MICROSECOND = 1_000
_V1_OPERATIONS: Mapping[bytes, int] = {b"Read": 0, b"Write": 1}


class Depth(IntEnum):
    """How much to read. LEAST: processor time and memory; MORE: also I/O, threads, OOM kills and pressure; ALL:
    everything, including limits and peak memory.
    """

    LEAST = 0
    MORE = 1
    ALL = 2


class _Slow(NamedTuple):
    oom_kills: int
    threads: int
    pressures: Pressures
    transfers: Sequence[Transfers]


class _Rare(NamedTuple):
    most_memory_bytes: int
    memory_failures: int
    processes: int
    limits: Limits


class Reader:
    """Reads cgroups. Not thread-safe."""

    def __init__(self, files: Files, devices: str = "/sys/dev/block") -> None:
        self._files = files
        self._devices = devices
        self._names: dict[str, str] = {}

    def counters(self, folders: Folders) -> tuple[int, int] | None:
        """Return processor time in nanoseconds and memory in bytes, the two values that change with any activity. None
        if the cgroup no longer exists. Raises ValueError if a file is malformed.
        """
        cpu = self._cpu(folders)
        if cpu is None:
            return None
        file = f"{folders.unified}/memory.current" if folders.is_v2 else f"{folders.memory}/memory.usage_in_bytes"
        return cpu, self._files.number(file)

    def usage(
        self, folders: Folders, last: Usage | None = None, *, depth: Depth = Depth.ALL, is_pod: bool = False
    ) -> Usage | None:
        """Return the cgroup's usage; None if it no longer exists. Raises ValueError if a file is malformed.

        Values beyond `depth` are copied from `last`; without `last`, everything is read. `processes` and `transfers`
        are not read for a pod's cgroup, because they belong to its containers.
        """
        core = self._v2(folders) if folders.is_v2 else self._v1(folders, last)
        if core is None:
            return None
        slow, rare = self._v1_slow, self._v1_rare
        if folders.is_v2:
            slow, rare = self._v2_slow, self._v2_rare
        some = last if last is not None and depth < Depth.MORE else slow(folders, is_pod)
        seldom = last if last is not None and depth < Depth.ALL else rare(folders, is_pod)
        return replace(
            core,
            oom_kills=some.oom_kills,
            threads=some.threads,
            pressures=some.pressures,
            transfers=some.transfers,
            most_memory_bytes=seldom.most_memory_bytes,
            memory_failures=seldom.memory_failures,
            processes=seldom.processes,
            limits=seldom.limits,
        )

    def first_process(self, folders: Folders) -> int:
        """Return the id of a process in the cgroup, as seen by this process; 0 if there is none."""
        words = (self._files.read(f"{folders.memory or folders.unified}/cgroup.procs") or b"").split(maxsplit=1)
        return int(words[0]) if words else 0

    def _cpu(self, folders: Folders) -> int | None:
        if folders.is_v2:
            text = self._files.read(f"{folders.unified}/cpu.stat")
            return None if text is None else _of(pairs(text), b"usage_usec") * _MICROSECOND
        text = self._files.read(f"{folders.cpuacct}/cpuacct.usage")
        return None if text is None else int(text)

    def _v1(self, folders: Folders, last: Usage | None) -> Usage | None:
        files, memory = self._files, folders.memory
        cpu, used = self._cpu(folders), files.read(f"{memory}/memory.usage_in_bytes")
        if cpu is None or used is None:
            return None
        stat = files.pairs(f"{memory}/memory.stat")
        # Without a CPU quota, nothing is throttled.
        may_throttle = last is None or last.limits.cpu_quota_us
        throttling = files.pairs(f"{folders.cpu}/cpu.stat") if may_throttle else {}
        return Usage(
            at=_now(),
            cpu_nanoseconds=cpu,
            periods=_of(throttling, b"nr_periods"),
            throttled_periods=_of(throttling, b"nr_throttled"),
            throttled_nanoseconds=_of(throttling, b"throttled_time"),
            memory_bytes=int(used),
            working_set_bytes=max(0, int(used) - _of(stat, b"total_inactive_file")),
            rss_bytes=_of(stat, b"total_rss"),
            cache_bytes=_of(stat, b"total_cache"),
            swap_bytes=_of(stat, b"total_swap"),
            page_faults=_of(stat, b"total_pgfault"),
            major_page_faults=_of(stat, b"total_pgmajfault"),
        )

    def _v2(self, folders: Folders) -> Usage | None:
        files, own = self._files, folders.unified
        text = files.read(f"{own}/cpu.stat")
        if text is None:
            return None
        used, cpu, stat = files.number(f"{own}/memory.current"), pairs(text), files.pairs(f"{own}/memory.stat")
        return Usage(
            at=_now(),
            cpu_nanoseconds=_of(cpu, b"usage_usec") * _MICROSECOND,
            periods=_of(cpu, b"nr_periods"),
            throttled_periods=_of(cpu, b"nr_throttled"),
            throttled_nanoseconds=_of(cpu, b"throttled_usec") * _MICROSECOND,
            memory_bytes=used,
            working_set_bytes=max(0, used - _of(stat, b"inactive_file")),
            rss_bytes=_of(stat, b"anon"),
            cache_bytes=_of(stat, b"file"),
            swap_bytes=files.number(f"{own}/memory.swap.current"),
            page_faults=_of(stat, b"pgfault"),
            major_page_faults=_of(stat, b"pgmajfault"),
        )

    def _v1_slow(self, folders: Folders, is_pod: bool) -> _Slow:
        files = self._files
        return _Slow(
            oom_kills=_of(files.pairs(f"{folders.memory}/memory.oom_control"), b"oom_kill"),
            threads=files.number(f"{folders.pids}/pids.current"),
            pressures=self._pressures(folders.unified),
            transfers=() if is_pod else self._v1_transfers(folders.blkio),
        )

    def _v2_slow(self, folders: Folders, is_pod: bool) -> _Slow:
        files, own = self._files, folders.unified
        return _Slow(
            oom_kills=_of(files.pairs(f"{own}/memory.events"), b"oom_kill"),
            threads=files.number(f"{own}/pids.current"),
            pressures=self._pressures(own),
            transfers=() if is_pod else self._v2_transfers(own),
        )

    def _v1_rare(self, folders: Folders, is_pod: bool) -> _Rare:
        files, memory = self._files, folders.memory
        return _Rare(
            most_memory_bytes=files.number(f"{memory}/memory.max_usage_in_bytes"),
            memory_failures=files.number(f"{memory}/memory.failcnt"),
            processes=0 if is_pod else self._processes(memory),
            limits=self._v1_limits(folders),
        )

    def _v2_rare(self, folders: Folders, is_pod: bool) -> _Rare:
        files, own = self._files, folders.unified
        return _Rare(
            most_memory_bytes=files.number(f"{own}/memory.peak"),
            memory_failures=_of(files.pairs(f"{own}/memory.events"), b"max"),
            processes=0 if is_pod else self._processes(own),
            limits=self._v2_limits(own),
        )

    def _processes(self, folder: str) -> int:
        return (self._files.read(f"{folder}/cgroup.procs") or b"").count(b"\n")

    def _v1_limits(self, folders: Folders) -> Limits:
        files = self._files
        return Limits(
            cpu_shares=files.number(f"{folders.cpu}/cpu.shares"),
            cpu_quota_us=limit(files.number(f"{folders.cpu}/cpu.cfs_quota_us")),
            cpu_period_us=files.number(f"{folders.cpu}/cpu.cfs_period_us"),
            memory_bytes=limit(files.number(f"{folders.memory}/memory.limit_in_bytes")),
            memory_reservation_bytes=limit(files.number(f"{folders.memory}/memory.soft_limit_in_bytes")),
            threads=limit(files.number(f"{folders.pids}/pids.max")),
        )

    def _v2_limits(self, own: str) -> Limits:
        files = self._files
        weight = files.number(f"{own}/cpu.weight")
        quota, period, *_ = *(files.read(f"{own}/cpu.max") or b"").split(), b"0", b"0"
        return Limits(
            cpu_shares=shares_of_weight(weight) if weight else 0,
            cpu_quota_us=limit(number(quota)),
            cpu_period_us=int(period),
            memory_bytes=limit(files.number(f"{own}/memory.max")),
            memory_reservation_bytes=limit(files.number(f"{own}/memory.low")),
            threads=limit(files.number(f"{own}/pids.max")),
        )

    def _pressures(self, folder: str) -> Pressures:
        def of(resource: str) -> Pressure | None:
            return self._files.pressure(f"{folder}/{resource}.pressure")

        return Pressures(of("cpu"), of("memory"), of("io")) if folder else Pressures()

    def _v1_transfers(self, folder: str) -> Sequence[Transfers]:
        """Return the I/O of each block device, from lines such as `8:0 Read 4096`."""
        if not folder:
            return ()
        amounts = self._v1_by_device(f"{folder}/blkio.throttle.io_service_bytes_recursive")
        counts = self._v1_by_device(f"{folder}/blkio.throttle.io_serviced_recursive") if amounts else {}
        return tuple(
            self._transfers(device, *found, *counts.get(device, (0, 0))) for device, found in sorted(amounts.items())
        )

    def _v1_by_device(self, file: str) -> Mapping[bytes, tuple[int, int]]:
        found: dict[bytes, list[int]] = {}
        for line in (self._files.read(file) or b"").splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in _V1_OPERATIONS:  # noqa: PLR2004 - device, operation, amount
                found.setdefault(words[0], [0, 0])[_V1_OPERATIONS[words[1]]] = int(words[2])
        return {device: (read, written) for device, (read, written) in found.items()}

    def _v2_transfers(self, folder: str) -> Sequence[Transfers]:
        """Return the I/O of each block device, from lines such as `8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0
        dios=0`.
        """
        return tuple(
            self._transfers(device, *(_of(values, name) for name in (b"rbytes", b"wbytes", b"rios", b"wios")))
            for device, values in _io_lines(self._files.read(f"{folder}/io.stat") or b"")
        )

    def _transfers(self, device: bytes, read: int, written: int, reads: int, writes: int) -> Transfers:
        name = self._device(device.decode("ascii", "replace"))
        return Transfers(device=name, read_bytes=read, written_bytes=written, reads=reads, writes=writes)

    def _device(self, numbers: str) -> str:
        """Return the path of the device file, or the device numbers if the kernel has no name for them."""
        if numbers not in self._names:
            try:
                link = os.readlink(f"{self._devices}/{numbers}")  # noqa: PTH115 - a str is enough
                self._names[numbers] = f"/dev/{link.rpartition('/')[2]}"
            except OSError:
                self._names[numbers] = numbers
        return self._names[numbers]


def _io_lines(text: bytes) -> Iterator[tuple[bytes, Mapping[bytes, bytes]]]:
    for line in text.splitlines():
        device, *words = line.split()
        if words:
            yield device, dict(word.split(b"=", 1) for word in words if b"=" in word)


def _of(values: Mapping[bytes, bytes], name: bytes) -> int:
    """Return a value, capped at NO_LIMIT; 0 if the kernel does not report it."""
    return min(int(values.get(name, 0)), NO_LIMIT)


def _now() -> int:
    return time.time_ns() // 1_000_000
