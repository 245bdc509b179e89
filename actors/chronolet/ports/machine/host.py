"""The machine that pods run on, as far as they are told of it or depend on it.

Comes in: nothing. Goes out: plain facts. Implementation: `adapters.host`. Source: pkg/kubelet/cm (capacity),
k8s.io/utils/nsenter and apimachinery's ChooseHostInterface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Host(Protocol):
    """Every call looks anew: addresses come and go."""

    def address(self) -> str:
        """The machine's own, by which others reach it; empty if it has none."""

    def cpu_milli(self) -> int:
        """Processors, in thousandths."""

    def memory_bytes(self) -> int:
        """Memory."""

    def storage_bytes(self) -> int:
        """The size of the file system that holds the state folder."""

    def missing_capabilities(self) -> Sequence[str]:
        """Names, without CAP_, of what the kernel knows and this machine's processes cannot be given."""

    def enforces_app_armor(self) -> bool:
        """Whether the kernel confines processes by AppArmor profiles."""

    def seccomp_profile(self, name: str) -> str:
        """The profile of that path below the state folder's `seccomp`, as one line of JSON; OSError if there is none,
        ValueError if it is none.
        """

    def file(self, path: str) -> str:
        """What one of the machine's own files says, empty if it is not there."""
