"""The port to the kernel log: which containers had a process OOM-killed, even if the runtime did not notice.

Input: a container's id. Output: a bool. Implementation: `adapters.machine.kernel_log`. Source: pkg/kubelet/oom, which
follows the same log.
"""

from __future__ import annotations

from typing import Protocol


class Kills(Protocol):
    """The OOM kills in the kernel log. Nothing is cached."""

    def named(self, container_id: str) -> bool:
        """Whether the log, as far back as the kernel keeps it, has an OOM kill of a process of this container."""

    def why_not(self) -> str:
        """Why this process cannot read the kernel log; empty if it can."""


class NoKills:
    """A `Kills` for machines whose kernel log cannot be read."""

    def named(self, container_id: str) -> bool:
        del container_id
        return False

    def why_not(self) -> str:
        return ""
