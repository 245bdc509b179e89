"""The kernel's cgroups, as qos needs them: what differs from what is wanted, and one step at a time to put it right.

Comes in: `Cgroup`s by their paths in the kubelet's words. Goes out: `Step`s, facts, `CgroupRefusal`. Implementations:
`adapters.cgroups`, over the kernel's files or over a tree of files that behaves as they do; one contract suite.
Source: pkg/kubelet/cm/cgroup_manager_linux.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from chronolet.rules.resources.cgroups import Cgroup, Path, Values

Driver = Literal["", "cgroupfs", "systemd"]


class CgroupRefusal(Exception):  # noqa: N818 - an expected answer, not an error
    """The kernel, or another owner, does not let us; the message says what and where."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do: write `wanted` into `file` below `folder`, or make the folder where there is no file.

    `found` is what the file says now, empty where it is not there yet.
    """

    path: Path
    folder: str
    file: str = ""
    found: str = ""
    wanted: str = ""


class CgroupTree(Protocol):
    """The cgroups of one driver. Every call looks anew; `CgroupRefusal` where the kernel says no."""

    @property
    def version(self) -> Literal[1, 2]:
        """Of the hierarchies that hold processors and memory."""

    @property
    def lost(self) -> Sequence[str]:
        """What this machine's kernel cannot hold anybody to, and what that means."""

    def page_sizes(self) -> Mapping[str, int]:
        """Bytes of huge pages that the machine has, by resource name."""

    def claim(self, root: Path, owner: str) -> None:
        """Make the tree below `root` ours, or find that it is. CgroupRefusal if somebody else made it."""

    def missing(self, cgroup: Cgroup) -> Sequence[Step]:
        """What is to be done, in this order, to have the cgroup as wanted; nothing is touched. None: it is."""

    def take(self, step: Step) -> None:
        """Do it."""

    def pods(self, root: Path) -> Sequence[Path]:
        """The cgroups of pods that there are, in whichever hierarchy."""

    def processes(self, path: Path) -> Sequence[int]:
        """Who is in the cgroup, or in one beneath it."""

    def kill(self, path: Path) -> None:
        """End all of them at once, by the kernel."""

    def remove(self, path: Path) -> None:
        """Remove the cgroup and what is beneath it, in every hierarchy. CgroupRefusal while somebody is in it."""

    def memory_used(self, path: Path) -> int:
        """Bytes."""

    def actual(self, cgroup: Cgroup) -> Mapping[str, tuple[str, str]]:
        """What its files say and should say, by file; `found` is empty where there is no such file."""


class ContainerCgroups(Protocol):
    """The cgroups that a container runtime makes."""

    def hold(self, pid: int, container_id: str, values: Values) -> None:
        """Write what is given of the values into the cgroup of the container whose process this is, beside what the
        runtime has put there. Nothing where it has ended. CgroupRefusal where the kernel has no such file, or says no.
        """


class Cgroups(Protocol):
    """The machine's cgroups."""

    def tree(self, driver: Driver) -> CgroupTree | None:
        """As this driver makes them. None where there are none that we may use: `why_not` says why."""

    def why_not(self) -> str:
        """What keeps this process from making cgroups, empty if nothing does."""
