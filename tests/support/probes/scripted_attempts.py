"""Probe attempts that end immediately with scripted readings.

Input: readings, from a subclass. Output: `begin` as in a prober, for tests of its callers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from chronolet.ports.pods.probes import May, Reading, Target


class Over:
    """An attempt or timer that has already ended."""

    began = True

    def cancel(self) -> None: ...


class ScriptedAttempts:
    """The part of a prober that makes attempts, with scripted readings."""

    @abstractmethod
    def soon(self, action: Callable[[], object]) -> None:
        """See `Prober.soon`."""

    @abstractmethod
    def reading(self, timeout_seconds: float) -> Reading:
        """Return the reading of the next attempt."""

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
