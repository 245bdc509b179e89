"""What containers use, read from the kernel's own files: Docker's statistics keep who asks waiting for up to a second.

Comes in: a container's id. Goes out: `Usage`. Its process is asked of the runtime once; its cgroups are found by that
process, v1 or v2, whatever the driver. Where that does not lead anywhere (another machine's /proc, cgroups that are not
mounted here) the runtime is asked after all. Next: the page /stats/summary. Answers to cAdvisor's container handler.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from chronolet.adapters import net_dev
from chronolet.adapters.cgroups.mounts import of_process
from chronolet.ports.runtime import Interface, Runtime, Usage
from chronolet.rules.cgroups import uid_of

_UNLIMITED = 1 << 60
"""What v1 says where there is no limit is near the largest number that it has."""


class CgroupUsage:
    """Usable from any thread."""

    def __init__(self, runtime: Runtime, proc: Path = Path("/proc")) -> None:
        self._runtime = runtime
        self._proc = proc
        self._lock = threading.Lock()
        self._pids: dict[str, int] = {}

    def of(self, container_id: str) -> Usage | None:
        """None of a container that does not run. `Refusal` as the runtime's."""
        pid = self._pid(container_id)
        if not pid:
            return None
        try:
            return read(pid, container_id, self._proc)
        except (OSError, ValueError, KeyError):
            with self._lock:
                self._pids.pop(container_id, None)
        return self._runtime.usage(container_id)

    def around(self, container_id: str) -> Usage | None:
        """Of the pod's cgroup that a container is in, with all that has ended there. None where there is none."""
        with self._lock:
            pid = self._pids.get(container_id, 0)
        try:
            return read_around(pid, container_id, self._proc) if pid else None
        except (OSError, ValueError, KeyError):
            return None

    def keep(self, container_ids: set[str]) -> None:
        """Forget all others."""
        with self._lock:
            self._pids = {one: pid for one, pid in self._pids.items() if one in container_ids}

    def _pid(self, container_id: str) -> int:
        with self._lock:
            known = self._pids.get(container_id, 0)
        if known:
            return known
        found = self._runtime.inspect(container_id, timeout_seconds=2.0)
        pid = found.pid if found is not None and found.state == "running" else 0
        if pid:
            with self._lock:
                self._pids[container_id] = pid
        return pid


def read(pid: int, container_id: str, proc: Path = Path("/proc")) -> Usage:
    """OSError, ValueError or KeyError where the files are not what they should be, or another process has the pid."""
    return _used(_of(pid, container_id, proc), net_dev.interfaces(proc / str(pid) / "net" / "dev"))


def read_around(pid: int, container_id: str, proc: Path = Path("/proc")) -> Usage | None:
    """The same of the cgroup above, if that is a pod's."""
    above = {name: folder.parent for name, folder in _of(pid, container_id, proc).items()}
    return _used(above, ()) if uid_of(above["memory"].name) else None


def _of(pid: int, container_id: str, proc: Path) -> Mapping[str, Path]:
    folders = of_process(pid, proc)
    memory = folders["memory"]
    if container_id not in str(memory):
        raise ValueError(f"{pid} is not in a cgroup of {container_id}")
    return folders


def _used(folders: Mapping[str, Path], interfaces: Sequence[Interface]) -> Usage:
    memory = folders["memory"]
    numbers = _pairs(memory / "memory.stat")
    v2 = (memory / "memory.current").exists()
    used = _number(memory / ("memory.current" if v2 else "memory.usage_in_bytes"))
    limit = _number(memory / ("memory.max" if v2 else "memory.limit_in_bytes"))
    prefix = "" if v2 else "total_"
    return Usage(
        at=time.time_ns() // 1_000_000,
        cpu_nanoseconds=_cpu(folders),
        memory_bytes=used,
        memory_limit_bytes=limit if limit < _UNLIMITED else 0,
        working_set_bytes=max(0, used - numbers[f"{prefix}inactive_file"]),
        rss_bytes=numbers["anon" if v2 else "total_rss"],
        page_faults=numbers[f"{prefix}pgfault"],
        major_page_faults=numbers[f"{prefix}pgmajfault"],
        processes=_number(folders["pids"] / "pids.current"),
        interfaces=interfaces,
    )


def _cpu(folders: Mapping[str, Path]) -> int:
    if "cpuacct" in folders and (folders["cpuacct"] / "cpuacct.usage").exists():
        return _number(folders["cpuacct"] / "cpuacct.usage")
    return _pairs(folders["cpu"] / "cpu.stat")["usage_usec"] * 1000


def _pairs(path: Path) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in path.read_text().splitlines())}


def _number(path: Path) -> int:
    text = path.read_text().strip()
    return _UNLIMITED if text == "max" else int(text)
