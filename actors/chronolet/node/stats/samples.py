"""The result of one sampling round, for the pages. Plain data.

Output of `sampler`, input of `summary`, `resource_page`, `cadvisor_page`.
"""

from __future__ import annotations

from typing import NamedTuple

from chronolet.adapters.machine.usage import Machine
from chronolet.ports.machine.usage import DiskUse, FileSystem, Usage
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState
from chronolet.rules.names.names import SANDBOX


class Measured(NamedTuple):
    """The usage of one cgroup. `nano_cores`: CPU usage since the previous sample in nanocores, None if unknown (see
    `rate`); `path`: the cgroup's path.
    """

    usage: Usage
    nano_cores: int | None = None
    path: str = ""


class ContainerSample(NamedTuple):
    """A running container. `layer`: the size of its writable layer; `log_bytes`: the size of its log. Each is None
    while it is unknown.
    """

    container: ContainerState
    measured: Measured
    layer: DiskUse | None = None
    log_bytes: int | None = None

    @property
    def name(self) -> str:
        return self.container.labels.get(labels.CONTAINER_NAME, "")

    @property
    def is_sandbox(self) -> bool:
        return self.name == SANDBOX


class PodSample(NamedTuple):
    """A pod with at least one running container, which may be its sandbox. `whole`: the pod's own cgroup, None if it
    has none. The sandbox's usage includes the network interfaces. Containers are sorted by name, those with the same
    name by creation time.
    """

    namespace: str
    name: str
    uid: str
    sandbox: ContainerSample | None
    containers: tuple[ContainerSample, ...]
    whole: Measured | None = None

    @property
    def all_containers(self) -> tuple[ContainerSample, ...]:
        """The containers and the sandbox."""
        return self.containers if self.sandbox is None else (*self.containers, self.sandbox)


class Snapshot(NamedTuple):
    """The result of one sampling round. `images`: the file system that containers write to, None if unknown."""

    machine: Machine
    node: Measured
    pods: tuple[PodSample, ...]
    images: FileSystem | None = None
    errors: int = 0
    """Number of cgroups whose files could not be parsed."""


def rate(before: Usage | None, now: Usage) -> int | None:
    """Return the CPU usage between two samples in nanocores; None for the first sample, after a counter reset, and if
    the clock has not advanced.
    """
    if before is None or now.at <= before.at or now.cpu_nanoseconds < before.cpu_nanoseconds:
        return None
    return (now.cpu_nanoseconds - before.cpu_nanoseconds) * 1000 // (now.at - before.at)
