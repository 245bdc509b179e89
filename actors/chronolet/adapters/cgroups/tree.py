"""The cgroups of one driver in all mounted hierarchies.

Input: cgroup paths as the kubelet names them, values. Output: the differences, and the writes that remove them. Next:
qos' effects, through the port. Corresponds to pkg/kubelet/cm/cgroup_manager_linux.go, pod_container_manager_linux.go.

A cgroup is one folder per hierarchy: v1 has one hierarchy per controller, v2 one for all. Docker creates the same
folders also in hierarchies in which the agent sets no values, so leftovers are searched for and removed in all of them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from chronolet.adapters.cgroups.files import Line, extra_lines, lines, page_bytes
from chronolet.adapters.cgroups.kernel import Kernel
from chronolet.adapters.cgroups.marks import Marks
from chronolet.adapters.cgroups.mounts import Mounted
from chronolet.ports.machine.cgroups import CgroupRefusal, Driver, Step
from chronolet.rules.resources.cgroups import Cgroup, Path, container_folder, folder, uid_of

_V2 = 2
_PAGES = "hugetlb"
CONTROLLERS = ("cpu", "memory", "pids", _PAGES)
"""The controllers whose limits the agent sets; Docker enables more on its own."""
_CONTROL = "cgroup.subtree_control"
_MARK = "owner"
_LOST = {
    "cpu": "no CPU shares and no CPU limits",
    "memory": "no memory limits for pods and QoS classes",
    "pids": "no limits of the number of processes",
}


class FolderTree:
    """Implements `ports.machine.cgroups.CgroupTree` with plain folders."""

    _enables_controllers = True
    """Whether the agent, rather than systemd, decides which controllers are enabled below a v2 cgroup."""

    def __init__(self, mounts: Sequence[Mounted], driver: Driver, kernel: Kernel, marks: Marks) -> None:
        self._driver = driver
        self._kernel = kernel
        self._marks = marks
        self._every = tuple(str(one.point) for one in mounts)
        self._of: dict[str, str] = {}
        self._unified = ""
        for one in mounts:
            self._of.update({name: str(one.point) for name in one.controllers if name in CONTROLLERS})
        if not self._of:  # with v1 controllers, a v2 hierarchy is not needed
            for one in mounts:
                offered = (kernel.read(f"{one.point}/cgroup.controllers") or "").split()
                self._of.update({name: str(one.point) for name in offered if name in CONTROLLERS})
                self._unified = str(one.point)
        self._delegated = [name for name in CONTROLLERS if self._unified and name in self._of]
        self._claimed: tuple[Path, str] | None = None
        self._used = tuple(dict.fromkeys(self._of[name] for name in CONTROLLERS if name in self._of))
        self._names: dict[Path, str] = {}

    @property
    def version(self) -> Literal[1, 2]:
        return 2 if self._unified else 1

    @property
    def lost(self) -> Sequence[str]:
        lost = [f"controller {name} is missing: {what}" for name, what in _LOST.items() if name not in self._of]
        if _PAGES not in self._of and any(self._machine_pages().values()):
            lost.append(f"controller {_PAGES} is missing: no huge pages for pods, though the machine has some")
        return lost

    def page_sizes(self) -> Mapping[str, int]:
        return self._machine_pages() if _PAGES in self._of else {}

    def _machine_pages(self) -> Mapping[str, int]:
        found = {}
        for name in self._kernel.names("/sys/kernel/mm/hugepages"):
            size = page_bytes(name.removeprefix("hugepages-"))
            count = self._kernel.read(f"/sys/kernel/mm/hugepages/{name}/nr_hugepages")
            found[_resource(size)] = int(count or 0) * size
        return found

    # -- ownership ---------------------------------------------------------------------------------------------------

    def claim(self, root: Path, owner: str) -> None:
        for point in self._used:
            where = f"{point}/{self._name(root)}"
            if not self._kernel.is_folder(where):
                continue
            mark = self._marks.read(where)
            if mark and mark != owner:
                raise CgroupRefusal(f"{where} belongs to chronolet's node {mark}: choose another --cgroup-root")
            if not mark and self._kernel.folders(where):
                raise CgroupRefusal(
                    f"{where} was created by another program, such as a kubelet: choose another --cgroup-root, "
                    "or stop its owner and remove it"
                )
            self._marks.write(where, owner)
        self._claimed = (root, owner)

    # -- reconciling -------------------------------------------------------------------------------------------------

    def missing(self, cgroup: Cgroup) -> Sequence[Step]:
        return tuple(self._missing(cgroup))

    def _missing(self, cgroup: Cgroup) -> Iterator[Step]:
        name, is_new = self._folder(cgroup), dict[str, bool]()
        yield from self._unmarked(cgroup.path)
        for line in self._lines(cgroup):
            where = f"{self._of[line.controller]}/{name}"
            found = None if is_new.get(where) else self._kernel.read(f"{where}/{line.file}")
            if found is None and where not in is_new:
                is_new[where] = not cgroup.is_containers and not self._kernel.is_folder(where)
                if is_new[where]:
                    yield Step(path=cgroup.path, folder=where)
            if found is None and not is_new[where]:
                continue  # the kernel has no such file, or the container has ended
            if found is None or not line.means(found):
                yield Step(path=cgroup.path, folder=where, file=line.file, found=found or "", wanted=line.wanted)

    def _unmarked(self, path: Path) -> Iterator[Step]:
        """Yield steps that restore the mark if another program removed our tree and the runtime recreated it."""
        if self._claimed is None or path != self._claimed[0]:
            return
        for where in (f"{point}/{self._name(path)}" for point in self._used):
            found = self._marks.read(where)
            if found != self._claimed[1] and self._kernel.is_folder(where):
                yield Step(path=path, folder=where, file=_MARK, found=found, wanted=self._claimed[1])

    def _lines(self, cgroup: Cgroup) -> Iterator[Line]:
        if cgroup.is_containers:
            yield from (line for line in extra_lines(self.version, cgroup.values) if line.controller in self._of)
            return
        if self._unified and self._enables_controllers and uid_of(cgroup.path[-1]) is None:
            # Child cgroups have exactly the controllers that are enabled here.
            text = " ".join(f"+{name}" for name in self._delegated)
            yield Line(self._delegated[0], _CONTROL, text, lambda found: set(self._delegated) <= set(found.split()))
        yield from (line for line in lines(self.version, cgroup.values) if line.controller in self._of)

    def take(self, step: Step) -> None:
        try:
            if step.file == _MARK:
                self._mark(step)
            elif step.file:
                self._write(step)
            else:
                self._make(step)
        except OSError as error:
            what = f"{step.folder}/{step.file}: write {step.wanted}" if step.file else step.folder
            raise CgroupRefusal(f"{what}: {error.strerror}") from error

    def _write(self, step: Step) -> None:
        self._kernel.write(f"{step.folder}/{step.file}", step.wanted)

    def _make(self, step: Step) -> None:
        """Create the folder and its parents, and mark the topmost cgroup as ours; on v2 also enable controllers in the
        parents.
        """
        point = next(one for one in self._used if step.folder.startswith(f"{one}/"))
        parts = step.folder.removeprefix(f"{point}/").split("/")
        above = point
        for part in parts[:-1]:
            if point == self._unified:
                self._delegate(above)
            above = f"{above}/{part}"
            self._kernel.make(above)
        if point == self._unified:
            self._delegate(above)
        self._kernel.make(step.folder)
        self._mark(step)

    def _mark(self, step: Step) -> None:
        """Mark the topmost cgroup as ours. If the agent is killed before this, the cgroup is unmarked and empty, so it
        can be claimed.
        """
        if self._claimed is not None and step.path == self._claimed[0]:
            self._marks.write(step.folder, self._claimed[1])

    def _delegate(self, above: str) -> None:
        found = (self._kernel.read(f"{above}/{_CONTROL}") or "").split()
        lacking = [name for name in self._delegated if name not in found]
        if lacking:
            self._kernel.write(f"{above}/{_CONTROL}", " ".join(f"+{name}" for name in lacking))

    def actual(self, cgroup: Cgroup) -> Mapping[str, tuple[str, str]]:
        name = self._folder(cgroup)
        found = {}
        for line in self._lines(cgroup):
            content = self._kernel.read(f"{self._of[line.controller]}/{name}/{line.file}")
            right = content is not None and line.means(content)
            found[line.file] = (content or "", content or "" if right else line.wanted)
        return found

    # -- removal -----------------------------------------------------------------------------------------------------

    def pods(self, root: Path) -> Sequence[Path]:
        found: dict[Path, None] = {}
        for above in (root, (*root, "burstable"), (*root, "besteffort")):
            for point in self._every:
                for name in self._kernel.folders(f"{point}/{self._name(above)}"):
                    uid = uid_of(name)
                    if uid is not None:
                        found[(*above, f"pod{uid}")] = None
        return tuple(found)

    def processes(self, path: Path) -> Sequence[int]:
        found: dict[int, None] = {}
        for point in self._every:
            for where in self._beneath(f"{point}/{self._name(path)}"):
                found.update(dict.fromkeys(map(int, (self._kernel.read(f"{where}/cgroup.procs") or "").split())))
        return tuple(found)

    def kill(self, path: Path) -> None:
        whole = f"{self._unified}/{self._name(path)}/cgroup.kill"
        if self._unified and self._kernel.read(whole) is not None:
            with suppress(OSError):
                self._kernel.write(whole, "1")
        for pid in self.processes(path):
            if pid not in (1, os.getpid()):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def remove(self, path: Path) -> None:
        for point in self._every:
            for where in self._beneath(f"{point}/{self._name(path)}"):
                try:
                    self._kernel.remove(where)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise CgroupRefusal(f"{where}: remove: {error.strerror}") from error

    def _beneath(self, where: str) -> Iterator[str]:
        """Yield the folder and all its descendants, deepest first."""
        if self._kernel.is_folder(where):
            for name in self._kernel.folders(where):
                yield from self._beneath(f"{where}/{name}")
            yield where

    def memory_used(self, path: Path) -> int:
        file = "memory.current" if self.version == _V2 else "memory.usage_in_bytes"
        return int(self._kernel.read(f"{self._of.get('memory', '')}/{self._name(path)}/{file}") or 0)

    def _folder(self, cgroup: Cgroup) -> str:
        return self._named(cgroup.path, container_folder) if cgroup.is_containers else self._name(cgroup.path)

    def _name(self, path: Path) -> str:
        return self._named(path, folder)

    def _named(self, path: Path, name: Callable[[Path, str], str]) -> str:
        known = self._names.get(path)
        if known is None:
            known = self._names[path] = name(path, self._driver)
            if len(self._names) > _MOST_NAMES:
                self._names.clear()
        return known


_MOST_NAMES = 10_000


def _resource(size: int) -> str:
    """Return the resource name that manifests use for a huge page size, such as hugepages-2Mi."""
    for name, bytes_of in (("Gi", 1 << 30), ("Mi", 1 << 20)):
        if size % bytes_of == 0:
            return f"hugepages-{size // bytes_of}{name}"
    return f"hugepages-{size >> 10}Ki"
