"""The port to the machine: the facts about it that pods see or depend on.

Output: plain facts. Implementation: `adapters.machine.host`. Source: pkg/kubelet/cm (capacity), k8s.io/utils/nsenter
and apimachinery's ChooseHostInterface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Host(Protocol):
    """The machine. Nothing is cached, because addresses can change."""

    def address(self) -> str:
        """Return the address at which other machines reach this one; empty if it has none."""

    def cpu_milli(self) -> int:
        """Return the CPU capacity in thousandths of a processor."""

    def memory_bytes(self) -> int:
        """Return the memory capacity in bytes."""

    def storage_bytes(self) -> int:
        """Return the size in bytes of the file system that contains the state folder."""

    def missing_capabilities(self) -> Sequence[str]:
        """Return the capabilities (names without CAP_) that the kernel supports but that are missing from the bounding
        set of this process.
        """

    def enforces_app_armor(self) -> bool:
        """Return whether the kernel confines processes with AppArmor profiles."""

    def seccomp_profile(self, name: str) -> str:
        """Return the profile at the path `name` below the folder `seccomp` in the state folder, as one line of JSON.
        Raises OSError if it cannot be read, and ValueError if it is not a profile.
        """

    def file(self, path: str) -> str:
        """Return the content of the machine's file at `path`; empty if the file does not exist."""
