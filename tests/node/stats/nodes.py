"""A simulated node whose cgroups are plain files, for the tests and the bench of the sampler.

Output: a `Sampled`, to which tests add pods, and whose pods they change.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chronolet.adapters.cgroup_stats.files import Files
from chronolet.adapters.cgroup_stats.finder import Finder
from chronolet.adapters.cgroup_stats.hierarchies import Hierarchies
from chronolet.adapters.machine.usage import Machine
from chronolet.node.stats.disk import Disk
from chronolet.node.stats.running import Running
from chronolet.node.stats.sampler import WAITS, Sampler, StatsSources, Waits
from chronolet.node.stats.tracked import Sources
from chronolet.ports.machine.usage import Limits, Usage
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal
from tests.support.machine.cgroup_trees import CgroupTrees, Kind

UNLISTED = Refusal("unavailable", "no answer")


class Sampled:
    """A simulated node with a sampler. `inspected`: the containers whose process id was requested; `lists`: how often
    the runtime was asked to list containers.
    """

    def __init__(self, folder: Path, kind: Kind = "v1", period: float = 3600, waits: Waits = WAITS) -> None:
        self.trees = CgroupTrees(folder, kind)
        self.running, self.files = Running(), Files()
        self.logs = folder / "logs"
        self.inspected: list[str] = []
        self.lists = 0
        self.listing: list[ContainerState] | Refusal = []
        self.clock = 1_000
        self.pids: dict[str, int] = {}
        self.disk = Disk(self.logs, self.trees.proc)
        finder = Finder(Hierarchies(self.trees.proc), ("kubepods",), self._pid, self.trees.proc)
        self._sources = Sources(self.files, finder, str(self.trees.proc))
        self._period, self._waits = period, waits
        self.sampler = self.new_sampler()

    def new_sampler(self) -> Sampler:
        """Build another sampler for the same node."""
        sources = StatsSources(self.running, self._sources, lambda: self.machine(), self._list, self.disk)  # noqa: PLW0108
        return Sampler(sources, self._period, self._waits)

    def machine(self) -> Machine:
        """Return the machine's usage: with each call, one second has passed in which one processor was busy."""
        self.clock += 1_000
        return machine(self.clock, self.clock * 1_000_000)

    def pod(self, number: int = 0, containers: Sequence[str] = ("app",), *, host_network: bool = False) -> str:
        """Add a pod to the next listing; returns the path of its cgroup."""
        states = [state(number, one, host_network=host_network) for one in (*containers, "POD")]
        assert isinstance(self.listing, list)
        self.listing += states
        return self.trees.pod(f"uid-{number}", [one.id for one in states])

    def listed(self) -> None:
        """Record a listing, as pleg does."""
        assert isinstance(self.listing, list)
        self.running.listed(self.listing, float("inf"))

    def _pid(self, container_id: str) -> int:
        self.inspected.append(container_id)
        return self.pids.get(container_id, 0)

    def _list(self) -> Sequence[ContainerState]:
        self.lists += 1
        if isinstance(self.listing, Refusal):
            raise self.listing
        return self.listing


def state(number: int, name: str, *, attempt: int = 0, host_network: bool = False) -> ContainerState:
    """Return a running container of the pod default/web-<number>."""
    owner = labels.Owner(pod=f"default/web-{number}", uid=f"uid-{number}", container=name, attempt=attempt)
    return ContainerState(
        id=f"{name.lower()}{attempt}-{number}".ljust(64, "x"),
        name=f"k8s_{name}_web-{number}",
        labels=labels.written("n", owner),
        state="running",
        image="busybox:1",
        created_at=5_000 + attempt,
        host_network=host_network and name == "POD",
        detailed=False,
    )


def machine(at: int, cpu: int) -> Machine:
    """Return a small machine whose usage at the time `at` includes `cpu` nanoseconds of processor time."""
    return Machine(
        usage=Usage(
            at=at,
            cpu_nanoseconds=cpu,
            limits=Limits(memory_bytes=1_000),
            memory_bytes=600,
            working_set_bytes=400,
        ),
        booted_at=1_000,
        default_interface="eth0",
        most_processes=99,
        capacity_bytes=10,
        available_bytes=4,
        inodes=3,
        inodes_free=1,
        processors=2,
    )
