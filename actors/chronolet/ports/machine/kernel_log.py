"""Whom the kernel killed for memory: what it says itself, whatever else became of whoever it was.

Comes in: a container's id. Goes out: whether a process of it was killed so. Implementation: `adapters.kernel_log`.
Source: pkg/kubelet/oom (which follows the same log).
"""

from __future__ import annotations

from typing import Protocol


class Kills(Protocol):
    """Every call looks anew."""

    def named(self, container_id: str) -> bool:
        """Whether the kernel killed a process of this container for memory, as far as it still knows."""

    def why_not(self) -> str:
        """What keeps this process from being told, empty if nothing does."""


class NoKills:
    """A kernel that tells nobody."""

    def named(self, container_id: str) -> bool:
        del container_id
        return False

    def why_not(self) -> str:
        return ""
