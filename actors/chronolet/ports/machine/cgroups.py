"""The port to the kernel's cgroups, for qos: finds differences from the desired state and fixes them step by step.

Input: `Cgroup`s with the kubelet's paths. Output: `Step`s, facts, `CgroupRefusal`. Implementations: `adapters.cgroups`,
over the kernel's files or over a tree of files that behaves like them; one contract suite.
Source: pkg/kubelet/cm/cgroup_manager_linux.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from chronolet.rules.resources.cgroups import Cgroup, Path, Values

Driver = Literal["", "cgroupfs", "systemd"]


class CgroupRefusal(Exception):  # noqa: N818 - an expected answer, not an error
    """The kernel or another owner forbids an action; the message names the action and the path."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One change: write `wanted` into `file` below `folder`; without a `file`, create the folder.

    `found`: the file's present content, empty if it does not exist yet.
    """

    path: Path
    folder: str
    file: str = ""
    found: str = ""
    wanted: str = ""


class CgroupTree(Protocol):
    """The cgroups of one driver. Nothing is cached. Each call may raise `CgroupRefusal`."""

    @property
    def version(self) -> Literal[1, 2]:
        """Cgroup version of the CPU and memory hierarchies."""

    @property
    def lost(self) -> Sequence[str]:
        """Limits that this machine's kernel cannot enforce, each with its consequence."""

    def page_sizes(self) -> Mapping[str, int]:
        """Total bytes of the machine's huge pages, by resource name."""

    def claim(self, root: Path, owner: str) -> None:
        """Claim the tree below `root` for `owner`; idempotent. CgroupRefusal if another owner created it."""

    def missing(self, cgroup: Cgroup) -> Sequence[Step]:
        """The ordered steps that bring the cgroup to its desired state; empty if it already has it. Changes nothing."""

    def take(self, step: Step) -> None:
        """Execute one step."""

    def pods(self, root: Path) -> Sequence[Path]:
        """The pod cgroups that exist in any hierarchy."""

    def processes(self, path: Path) -> Sequence[int]:
        """Pids in the cgroup and its descendants."""

    def kill(self, path: Path) -> None:
        """Kill all of these processes atomically, through the kernel."""

    def remove(self, path: Path) -> None:
        """Remove the cgroup and its descendants in every hierarchy. CgroupRefusal while it contains processes."""

    def memory_used(self, path: Path) -> int:
        """Memory usage in bytes."""

    def actual(self, cgroup: Cgroup) -> Mapping[str, tuple[str, str]]:
        """Present and desired content of its files, by file name. The present content is empty if the file does not
        exist.
        """


class ContainerCgroups(Protocol):
    """The cgroups that the container runtime creates."""

    def hold(self, pid: int, container_id: str, values: Values) -> None:
        """Write the given values into the cgroup of the container with this process, in addition to the runtime's own.
        No-op if the process has ended. CgroupRefusal if the kernel has no such file or denies the write.
        """


class Cgroups(Protocol):
    """The machine's cgroups."""

    def tree(self, driver: Driver) -> CgroupTree | None:
        """The tree of this driver. None if this process may not use any; `why_not` gives the reason."""

    def why_not(self) -> str:
        """Why this process cannot create cgroups; empty if it can."""
