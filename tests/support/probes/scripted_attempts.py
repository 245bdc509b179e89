"""Probe attempts that end at once, as a script says.

Output: what a prober's `begin` is in tests of what calls it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from chronolet.ports.pods.probes import May, Reading, Target


class Over:
    """An attempt, or a timer, that is over as soon as it is made."""

    began = True

    def cancel(self) -> None: ...


class ScriptedAttempts:
    """A part of a prober."""

    @abstractmethod
    def soon(self, action: Callable[[], object]) -> None:
        """As the prober does it."""

    @abstractmethod
    def reading(self, timeout_seconds: float) -> Reading:
        """How the next attempt went."""

    def begin(
        self,
        target: Target,
        timeout_seconds: float,
        done: Callable[[Reading], None],
        may: May,
        *,
        probe: str = "",
        first: bool = False,
    ) -> Over:
        del target, may, probe, first
        found = self.reading(timeout_seconds)
        self.soon(lambda: done(found))
        return Over()
