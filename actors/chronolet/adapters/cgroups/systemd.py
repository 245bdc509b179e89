"""Cgroups that systemd makes: a slice for each, and values by systemd's names, so that it does not put its own back.

Comes in: the same as for plain folders. Goes out: calls of `busctl` and `systemctl`. Next: systemd. Answers to runc's
libcontainer/cgroups/systemd. What systemd has no name for is written into the kernel's files beside it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as Folder

from chronolet.adapters.cgroups.tree import FolderTree
from chronolet.ports.cgroups import CgroupRefusal, Step
from chronolet.rules.cgroups import Path, unit

_SECONDS = 30
_MANAGER = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_ACCOUNTED = ("CPUAccounting", "MemoryAccounting", "TasksAccounting")


def _number(name: str) -> Callable[[str], str]:
    return lambda wanted: f"{name}={'infinity' if wanted in ('max', '-1') else wanted}"


def _cpu_max(wanted: str) -> str:
    """`quota period` in microseconds as a share of one processor."""
    quota, _, period = wanted.partition(" ")
    return "CPUQuota=" if quota == "max" else f"CPUQuota={int(quota) * 100 / int(period):.2f}%"


_PROPERTIES: Mapping[str, Callable[[str], str]] = {
    "cpu.weight": _number("CPUWeight"),
    "cpu.max": _cpu_max,
    "memory.max": _number("MemoryMax"),
    "memory.min": _number("MemoryMin"),
    "memory.low": _number("MemoryLow"),
    "memory.high": _number("MemoryHigh"),
    "pids.max": _number("TasksMax"),
    "cpu.shares": _number("CPUShares"),
    "memory.limit_in_bytes": _number("MemoryLimit"),
}


def systemd_runs(place: Folder = Folder("/run/systemd/system")) -> bool:
    """Whether there is one to ask."""
    return place.is_dir()


class SystemdTree(FolderTree):
    """`ports.cgroups.CgroupTree`, with systemd's help."""

    def _make(self, step: Step) -> None:
        name = unit(step.path)
        properties = ["DefaultDependencies", "b", "false"]
        for one in _ACCOUNTED:
            properties += [one, "b", "true"]
        count = str(len(properties) // 3)
        _call(
            "busctl",
            "call",
            *_MANAGER,
            "StartTransientUnit",
            "ssa(sv)a(sa(sv))",
            name,
            "replace",
            count,
            *properties,
            "0",
        )
        # systemd answers before it has made the folder, and hands down only what its own children need.
        super()._make(step)

    def _write(self, step: Step) -> None:
        property_of = _PROPERTIES.get(step.file)
        if property_of is not None:
            _call("systemctl", "set-property", "--runtime", unit(step.path), property_of(step.wanted))
        super()._write(step)

    def remove(self, path: Path) -> None:
        _call("systemctl", "stop", unit(path))
        super().remove(path)


def _call(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CgroupRefusal(f"{' '.join(command[:2])}: {error}") from error
    if done.returncode and not _is_there_already(done.stderr):
        raise CgroupRefusal(f"{' '.join(command)}: {done.stderr.strip()}")


def _is_there_already(said: str) -> bool:
    return "already exists" in said or "already loaded" in said or "not loaded" in said


__all__: Sequence[str] = ("SystemdTree", "systemd_runs")
