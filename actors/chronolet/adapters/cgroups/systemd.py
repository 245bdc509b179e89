"""Cgroups that systemd makes: a slice for each, and values by systemd's names, so that it does not put its own back.

Comes in: the same as for plain folders. Goes out: calls of `busctl` and `systemctl`. Next: systemd. Answers to runc's
libcontainer/cgroups/systemd. The kernel's files are written besides: systemd answers before it has done so, and has no
name for some of them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path as Folder

from chronolet.adapters.cgroups.files import lines
from chronolet.adapters.cgroups.tree import FolderTree
from chronolet.ports.machine.cgroups import CgroupRefusal, Step
from chronolet.rules.resources.cgroups import Cgroup, Path, unit

_SECONDS = 30
_MANAGER = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_ACCOUNTED = ("CPUAccounting", "MemoryAccounting", "TasksAccounting")
_INFINITY = (1 << 64) - 1
_SECOND_US = 1_000_000

Properties = Mapping[str, int]


def _number(name: str, least: int = 0) -> Callable[[str], Properties]:
    return lambda text: {name: _INFINITY if text in ("max", "-1") else max(int(text), least)}


def _cpu_max(text: str) -> Properties:
    """`quota period` in microseconds, as time in each second."""
    quota, _, period = text.partition(" ")
    if quota == "max":
        return {"CPUQuotaPerSecUSec": _INFINITY}
    return {"CPUQuotaPerSecUSec": int(quota) * _SECOND_US // int(period), "CPUQuotaPeriodUSec": int(period)}


_PROPERTIES: Mapping[str, Callable[[str], Properties]] = {
    "cpu.weight": _number("CPUWeight"),
    "cpu.max": _cpu_max,
    # Of no memory at all, and of no process, systemd does not want to hear.
    "memory.max": _number("MemoryMax", 1),
    "memory.high": _number("MemoryHigh", 1),
    "memory.min": _number("MemoryMin"),
    "memory.low": _number("MemoryLow"),
    "pids.max": _number("TasksMax", 1),
    "cpu.shares": _number("CPUShares"),
    "memory.limit_in_bytes": _number("MemoryLimit", 1),
}


def properties(file: str, text: str) -> Properties:
    """What systemd calls the value of a kernel's file; nothing where it has no name for it."""
    return _PROPERTIES[file](text) if file in _PROPERTIES else {}


def systemd_runs(place: Folder = Folder("/run/systemd/system")) -> bool:
    """Whether there is one to ask."""
    return place.is_dir()


def tell(name: str, values: Properties) -> None:
    """Give a unit that runs these values, until the machine ends. CgroupRefusal."""
    if values:
        _ask("SetUnitProperties", "sba(sv)", name, "true", *_array(("t", *one) for one in values.items()))


class SystemdTree(FolderTree):
    """`ports.cgroups.CgroupTree`, with systemd's help. Each call is a process: a new slice gets all in one."""

    _hands_down = False
    """It takes away what none of its slices beneath needs any more: only a new one is seen to (`_make`)."""
    _meant: Cgroup | None = None
    """What `missing` was asked for last: the values that a new slice begins with."""
    _told: Mapping[str, Properties] | None = None
    """What that slice began with, by file; None if it is not new."""

    def missing(self, cgroup: Cgroup) -> Sequence[Step]:
        self._meant, self._told = cgroup, None
        return super().missing(cgroup)

    def _make(self, step: Step) -> None:
        if self._told is None:
            self._told = self._started(step.path)
        # systemd answers before it has made the folder, and hands down only what its own children need.
        super()._make(step)

    def _started(self, path: Path) -> Mapping[str, Properties]:
        """The slice runs, with what it was told of its values."""
        meant = self._meant
        values = lines(self.version, meant.values) if meant is not None and meant.path == path else ()
        told = {line.file: properties(line.file, line.wanted) for line in values}
        together = {key: number for one in told.values() for key, number in one.items()}
        ours = [("b", "DefaultDependencies", "false"), *(("b", one, "true") for one in _ACCOUNTED)]
        given = _array([*ours, *(("t", *one) for one in together.items())])
        if not _ask("StartTransientUnit", "ssa(sv)a(sa(sv))", unit(path), "replace", *given, "0"):
            tell(unit(path), together)
        return told

    def _write(self, step: Step) -> None:
        values = properties(step.file, step.wanted)
        if self._told is None or self._told.get(step.file) != values:
            tell(step.folder.rpartition("/")[2], values)
        super()._write(step)

    def remove(self, path: Path) -> None:
        _call("systemctl", "stop", unit(path))
        super().remove(path)


def _array(values: Iterable[tuple[str, str, object]]) -> Sequence[str]:
    """A D-Bus array of (name, typed value), as busctl takes it."""
    words = [[name, kind, str(value)] for kind, name, value in values]
    return [str(len(words)), *(word for one in words for word in one)]


def _ask(method: str, signature: str, *words: str) -> bool:
    return _call("busctl", "call", *_MANAGER, method, signature, *words)


def _call(*command: str) -> bool:
    """False if there was nothing left to do. CgroupRefusal."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CgroupRefusal(f"{' '.join(command[:2])}: {error}") from error
    if done.returncode and not _is_there_already(done.stderr):
        raise CgroupRefusal(f"{' '.join(command)}: {done.stderr.strip()}")
    return not done.returncode


def _is_there_already(said: str) -> bool:
    return "already exists" in said or "already loaded" in said or "not loaded" in said
