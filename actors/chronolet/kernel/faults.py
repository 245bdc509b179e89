"""Defines named crash points. The kernel and the effects pass one crash point before and one after each step and each
external call. Tests record crash points or end the process at one; in production they have no effect.
"""

from __future__ import annotations

from typing import Protocol


class Faults(Protocol):
    """Hook that is called at each crash point."""

    def point(self, name: str) -> None:
        """Called at a crash point. `name` is, for example, `step/before pod/0` or `effect/before docker.start
        pod/default/web container/app`.
        """


class NoFaults:
    """The production implementation, which does nothing."""

    def point(self, name: str) -> None:
        """Do nothing."""
