"""The port to the kernel log, which shows whether a container's process was OOM-killed, even if the runtime missed it.

Input: a container's id. Output: a bool. Implementation: `adapters.machine.kernel_log`. Source: pkg/kubelet/oom, which
follows the same log.
"""

from __future__ import annotations

from typing import Protocol


class Kills(Protocol):
    """The OOM kills in the kernel log. Nothing is cached."""

    def named(self, container_id: str) -> bool:
        """Return whether the log, as far back as the kernel retains it, reports an OOM kill of a process in this
        container.
        """

    def why_not(self) -> str:
        """Return why this process cannot read the kernel log; empty if it can."""


class NoKills:
    """A `Kills` for machines whose kernel log cannot be read."""

    def named(self, container_id: str) -> bool:
        del container_id
        return False

    def why_not(self) -> str:
        return ""
