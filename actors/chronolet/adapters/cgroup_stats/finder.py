"""Find a container's cgroup by trying the paths that the agent and Docker use.

Input: the pod's uid, the container's id. Output: `Folders`. Next: `node.stats`. The runtime is asked for the
container's process only if none of these paths exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from chronolet.adapters.cgroup_stats.hierarchies import Folders, Hierarchies
from chronolet.rules.resources.cgroups import Path as CgroupPath
from chronolet.rules.resources.cgroups import container_folder, pod_name, uid_of

_CLASSES: tuple[CgroupPath, ...] = (("burstable",), ("besteffort",), ())
_DRIVERS = ("cgroupfs", "systemd")
_LEADING = ("memory", "cpuacct", "")

Pid = Callable[[str], int]
"""Returns the process id of a running container; 0 if it is not running."""


class Finder:
    """Finds the cgroups of containers. `root` is the path of the cgroup above all pods; `pid` queries the runtime, and
    its exceptions propagate.
    """

    def __init__(self, hierarchies: Hierarchies, root: CgroupPath, pid: Pid, proc: Path = Path("/proc")) -> None:
        self._hierarchies = hierarchies
        self._root = root
        self._pid = pid
        self._proc = proc

    def container(self, uid: str, container_id: str) -> Folders | None:
        """Return the container's cgroup; None if it has none on this machine."""
        if not self._hierarchies:
            return None
        for path in self._usual_paths(uid, container_id):
            if self._hierarchies.has(path):
                return self._hierarchies.folders(path)
        pid = self._pid(container_id)
        path = self._of_process(pid, container_id) if pid else ""
        return self._hierarchies.folders(path) if path else None

    def pod(self, container: Folders) -> Folders | None:
        """Return the cgroup of the container's pod; None if the container's cgroup is not below that of a pod."""
        above = container.path.rpartition("/")[0]
        return self._hierarchies.folders(above) if uid_of(above.rpartition("/")[2]) else None

    def _usual_paths(self, uid: str, container_id: str) -> Iterator[str]:
        for driver in _DRIVERS:
            for one in _CLASSES:
                yield "/" + container_folder((*self._root, *one, pod_name(uid), container_id), driver)
        yield f"/docker/{container_id}"
        yield f"/system.slice/docker-{container_id}.scope"

    def _of_process(self, pid: int, container_id: str) -> str:
        """Return the container's cgroup path from the process's /proc entry; empty if the pid has been reused or /proc
        belongs to another machine.
        """
        try:
            text = (self._proc / str(pid) / "cgroup").read_text()
        except OSError:
            return ""
        paths: dict[str, str] = {}
        for line in text.splitlines():
            _, controllers, path = line.split(":", 2)
            paths |= dict.fromkeys(controllers.split(","), path)
        path = next((paths[name] for name in _LEADING if name in paths), "")
        return path if container_id in path and self._hierarchies.has(path) else ""
