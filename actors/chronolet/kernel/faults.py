"""Named crash points. The kernel and the effects pass one before and one after each step and external call; a test may
record them, or end the process at one. In production they do nothing.
"""

from __future__ import annotations

from typing import Protocol


class Faults(Protocol):
    """Receives each crash point."""

    def point(self, name: str) -> None:
        """`name` is `step/before pod/0`, `effect/before docker.start pod/default/web container/app`, and so on."""


class NoFaults:
    """The production implementation: does nothing."""

    def point(self, name: str) -> None:
        """Do nothing."""
