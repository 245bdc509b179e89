"""Cgroups created by systemd, one slice each. Values are set as systemd's properties, so that it does not reset them.

Input: as for `tree`. Output: calls to `busctl` and `systemctl`. Next: systemd. Corresponds to runc's
libcontainer/cgroups/systemd. The kernel's files are written as well, because systemd replies before it has applied a
value, and has no property for some files.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path as Folder

from chronolet.adapters.cgroups.files import lines
from chronolet.adapters.cgroups.kernel import Kernel
from chronolet.adapters.cgroups.marks import Marks
from chronolet.adapters.cgroups.mounts import Mounted
from chronolet.adapters.cgroups.tree import FolderTree
from chronolet.ports.machine.cgroups import CgroupRefusal, Driver, Step
from chronolet.rules.resources.cgroups import Cgroup, Path, unit

_MANAGER = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_ACCOUNTED = ("CPUAccounting", "MemoryAccounting", "TasksAccounting")
_INFINITY = (1 << 64) - 1
_SECOND_US = 1_000_000

Properties = Mapping[str, int]


def _number(name: str, least: int = 0) -> Callable[[str], Properties]:
    return lambda text: {name: _INFINITY if text in ("max", "-1") else max(int(text), least)}


def _cpu_max(text: str) -> Properties:
    """Convert `quota period` in microseconds to properties, with the quota as processor time per second."""
    quota, _, period = text.partition(" ")
    if quota == "max":
        return {"CPUQuotaPerSecUSec": _INFINITY}
    return {"CPUQuotaPerSecUSec": int(quota) * _SECOND_US // int(period), "CPUQuotaPeriodUSec": int(period)}


_PROPERTIES: Mapping[str, Callable[[str], Properties]] = {
    "cpu.weight": _number("CPUWeight"),
    "cpu.max": _cpu_max,
    # systemd rejects limits of zero memory or zero processes.
    "memory.max": _number("MemoryMax", 1),
    "memory.high": _number("MemoryHigh", 1),
    "memory.min": _number("MemoryMin"),
    "memory.low": _number("MemoryLow"),
    "pids.max": _number("TasksMax", 1),
    "cpu.shares": _number("CPUShares"),
    "memory.limit_in_bytes": _number("MemoryLimit", 1),
}


def properties(file: str, text: str) -> Properties:
    """Return systemd's properties for the value of a kernel file; empty if there are none."""
    return _PROPERTIES[file](text) if file in _PROPERTIES else {}


def systemd_runs(place: Folder = Folder("/run/systemd/system")) -> bool:
    """Whether this machine was booted with systemd."""
    return place.is_dir()


class Manager:
    """Calls systemd; each call is a subprocess that may run for at most `timeout_seconds`. A failed call raises
    CgroupRefusal.
    """

    def __init__(self, timeout_seconds: float = 30.0) -> None:
        self._timeout_seconds = timeout_seconds

    def set_properties(self, name: str, values: Properties) -> None:
        """Set the properties of a running unit until the next boot."""
        if values:
            self._ask("SetUnitProperties", "sba(sv)", name, "true", *_array(("t", *one) for one in values.items()))

    def start(self, name: str, values: Properties) -> bool:
        """Start a slice with these properties; return False if it already exists."""
        ours = [("b", "DefaultDependencies", "false"), *(("b", one, "true") for one in _ACCOUNTED)]
        given = _array([*ours, *(("t", *one) for one in values.items())])
        return self._ask("StartTransientUnit", "ssa(sv)a(sa(sv))", name, "replace", *given, "0")

    def stop(self, name: str) -> None:
        """Stop a unit if it is running."""
        self._call("systemctl", "stop", name)

    def _ask(self, method: str, signature: str, *words: str) -> bool:
        return self._call("busctl", "call", *_MANAGER, method, signature, *words)

    def _call(self, *command: str) -> bool:
        """Run a command; return False if it failed only because the unit already exists or is not loaded."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=self._timeout_seconds)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CgroupRefusal(f"{' '.join(command[:2])}: {error}") from error
        if done.returncode and not _is_no_op(done.stderr):
            raise CgroupRefusal(f"{' '.join(command)}: {done.stderr.strip()}")
        return not done.returncode


class SystemdTree(FolderTree):
    """Implements `ports.machine.cgroups.CgroupTree` for systemd. Each call to systemd starts a process, so a new slice
    gets all values in one call.
    """

    _enables_controllers = False
    """systemd disables controllers that no child slice needs, so they are enabled only for new slices (in `_make`)."""
    _desired: Cgroup | None = None
    """The last argument of `missing`; a new slice is started with its values."""
    _initial: Mapping[str, Properties] | None = None
    """The properties with which the slice was started, for each file; None if it is not new."""

    def __init__(
        self, mounts: Sequence[Mounted], driver: Driver, kernel: Kernel, marks: Marks, *, manager: Manager | None = None
    ) -> None:
        super().__init__(mounts, driver, kernel, marks)
        self._manager = manager or Manager()

    def missing(self, cgroup: Cgroup) -> Sequence[Step]:
        self._desired, self._initial = cgroup, None
        return super().missing(cgroup)

    def _make(self, step: Step) -> None:
        if self._initial is None:
            self._initial = self._start(step.path)
        # systemd replies before it has created the folder, and enables only controllers that its own slices need.
        super()._make(step)

    def _start(self, path: Path) -> Mapping[str, Properties]:
        """Start the slice with its initial properties and return them."""
        desired = self._desired
        values = lines(self.version, desired.values) if desired is not None and desired.path == path else ()
        initial = {line.file: properties(line.file, line.wanted) for line in values}
        together = {key: number for one in initial.values() for key, number in one.items()}
        if not self._manager.start(unit(path), together):
            self._manager.set_properties(unit(path), together)
        return initial

    def _write(self, step: Step) -> None:
        values = properties(step.file, step.wanted)
        if self._initial is None or self._initial.get(step.file) != values:
            self._manager.set_properties(step.folder.rpartition("/")[2], values)
        super()._write(step)

    def remove(self, path: Path) -> None:
        self._manager.stop(unit(path))
        super().remove(path)


def _array(values: Iterable[tuple[str, str, object]]) -> Sequence[str]:
    """Format the values as a D-Bus array of (name, typed value) for busctl."""
    words = [[name, kind, str(value)] for kind, name, value in values]
    return [str(len(words)), *(word for one in words for word in one)]


def _is_no_op(error: str) -> bool:
    return "already exists" in error or "already loaded" in error or "not loaded" in error
