"""The port to the kernel's cgroups, for qos: finds differences from the desired state and fixes them step by step.

Input: `Cgroup`s with the kubelet's paths. Output: `Step`s, facts, `CgroupRefusal`. Implementations: `adapters.cgroups`,
on the kernel's files or on ordinary files that behave like them; both are tested by one contract suite.
Source: pkg/kubelet/cm/cgroup_manager_linux.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from chronolet.rules.resources.cgroups import Cgroup, Path, Values

Driver = Literal["", "cgroupfs", "systemd"]


class CgroupRefusal(Exception):  # noqa: N818 - an expected answer, not an error
    """A change to a cgroup failed, or the cgroup belongs to another owner. The message names the failed action or the
    owner.
    """


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One change: write `wanted` to `file` in `folder`, or, if `file` is empty, create the folder.

    `found`: the file's current content, empty if the file does not exist yet.
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
        """Return the total size of the machine's huge pages in bytes, by resource name."""

    def claim(self, root: Path, owner: str) -> None:
        """Claim the tree below `root` for `owner`; idempotent. Raises CgroupRefusal if another owner created it."""

    def missing(self, cgroup: Cgroup) -> Sequence[Step]:
        """Return, in order, the steps that bring the cgroup to its desired state; empty if it is already in that state.
        Changes nothing.
        """

    def take(self, step: Step) -> None:
        """Execute one step."""

    def pods(self, root: Path) -> Sequence[Path]:
        """Return the paths of the pod cgroups that exist in any hierarchy."""

    def processes(self, path: Path) -> Sequence[int]:
        """Return the pids in the cgroup and its descendants."""

    def kill(self, path: Path) -> None:
        """Kill all processes in the cgroup and its descendants atomically, through the kernel."""

    def remove(self, path: Path) -> None:
        """Remove the cgroup and its descendants in every hierarchy. Raises CgroupRefusal while processes are in it."""

    def memory_used(self, path: Path) -> int:
        """Return the memory usage of the cgroup in bytes."""

    def actual(self, cgroup: Cgroup) -> Mapping[str, tuple[str, str]]:
        """Return the current and the desired content of the cgroup's files, by file name. The current content is empty
        if the file does not exist.
        """


class ContainerCgroups(Protocol):
    """The cgroups that the container runtime creates."""

    def hold(self, pid: int, container_id: str, values: Values) -> None:
        """Write `values` to the cgroup of the container whose process has this `pid`, in addition to the runtime's own
        values. No-op if the process has exited. Raises CgroupRefusal if the kernel has no file for a value or denies
        the write.
        """


class Cgroups(Protocol):
    """The machine's cgroups."""

    def tree(self, driver: Driver) -> CgroupTree | None:
        """Return the tree of this driver; None if this process may not use any tree (`why_not` returns the reason)."""

    def why_not(self) -> str:
        """Return why this process cannot create cgroups; empty if it can."""
