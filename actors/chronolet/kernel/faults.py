"""Named crash points. The kernel and effects announce each step and outside call; a test may record them, or end the
process at one of them. In production nothing listens.
"""

from __future__ import annotations

from typing import Protocol


class Faults(Protocol):
    """Told of each point as it is passed."""

    def point(self, name: str) -> None:
        """`name` is `step/before pod/0`, `effect/before docker.start pod/default/web container/app`, and so on."""


class NoFaults:
    """Nothing happens at any point."""

    def point(self, name: str) -> None:
        """Pass on."""
