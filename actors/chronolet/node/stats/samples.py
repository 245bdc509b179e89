"""One round of sampling, as the pages are given it. Plain data.

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
    """What one cgroup uses. `nano_cores` is its rate in billionths of a processor since the sample before, None without
    one; `path` is the cgroup's.
    """

    usage: Usage
    nano_cores: int | None = None
    path: str = ""


class ContainerSample(NamedTuple):
    """A running container. `layer` is what it has written to its own file system, `log_bytes` the size of its log;
    None where that is not known (yet).
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
    """A pod with at least one container. `whole` is its own cgroup, None where it has none; the sandbox's usage has the
    network interfaces. Containers are sorted by name; of several runs of one, the last created is the last.
    """

    namespace: str
    name: str
    uid: str
    sandbox: ContainerSample | None
    containers: tuple[ContainerSample, ...]
    whole: Measured | None = None

    @property
    def all_containers(self) -> tuple[ContainerSample, ...]:
        """The sandbox too."""
        return self.containers if self.sandbox is None else (*self.containers, self.sandbox)


class Snapshot(NamedTuple):
    """One round. `images` is the file system that containers write to, None where it is not known."""

    machine: Machine
    node: Measured
    pods: tuple[PodSample, ...]
    images: FileSystem | None = None
    errors: int = 0
    """Containers whose cgroup did not read as the kernel's do."""


def rate(before: Usage | None, now: Usage) -> int | None:
    """Billionths of a processor between two samples; None for the first one, and after counters began again."""
    if before is None or now.at <= before.at or now.cpu_nanoseconds < before.cpu_nanoseconds:
        return None
    return (now.cpu_nanoseconds - before.cpu_nanoseconds) * 1000 // (now.at - before.at)
