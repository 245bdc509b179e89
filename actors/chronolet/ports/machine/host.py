"""The port to the machine: the facts about it that pods see or depend on.

Output: plain facts. Implementation: `adapters.machine.host`. Source: pkg/kubelet/cm (capacity), k8s.io/utils/nsenter
and apimachinery's ChooseHostInterface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Host(Protocol):
    """The machine. Nothing is cached, because addresses change."""

    def address(self) -> str:
        """The address at which others reach the machine; empty if it has none."""

    def cpu_milli(self) -> int:
        """CPU capacity in thousandths of a processor."""

    def memory_bytes(self) -> int:
        """Memory capacity."""

    def storage_bytes(self) -> int:
        """The size of the file system that holds the state folder."""

    def missing_capabilities(self) -> Sequence[str]:
        """Capabilities (names without CAP_) that the kernel has but that processes here cannot be granted."""

    def enforces_app_armor(self) -> bool:
        """Whether the kernel confines processes by AppArmor profiles."""

    def seccomp_profile(self, name: str) -> str:
        """The profile at the path `name` below the state folder's `seccomp`, as one line of JSON. OSError if it cannot
        be read, ValueError if it is not a profile.
        """

    def file(self, path: str) -> str:
        """Content of one of the machine's files; empty if it does not exist."""
