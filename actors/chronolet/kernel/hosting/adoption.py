"""Adopts what is already running, once per log, before the process acquires its first shards.

Input: the process's `Adopt` function. Output: whether adoption is done for the current log. Next: `supervisor`, which
acquires no shard until it is done.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from chronolet.kernel.step.routing import Router
from chronolet_schemas import kernel

log = structlog.get_logger("chronolet.kernel")

Adopt = Callable[[Router, str, kernel.LogLost | None], str]
"""A function that adopts what is already running. Its arguments are the router, the log's run, and what that log has
lost. It sends the commands that must be decided before anything else. It returns an empty string when it is done, else
the reason why the supervisor has to call it again later.
"""


class AdoptionHook:
    """Calls a process's `Adopt` function until adoption is done. `phase` is called with the name of each phase."""

    def __init__(self, adopt: Adopt | None, phase: Callable[[str], None]) -> None:
        """`adopt`: None if there is nothing to adopt, as in a process that runs no containers."""
        self._adopt = adopt
        self._phase = phase
        self._adopted_run = ""
        self._logged = ""

    def is_done(self, run: str) -> bool:
        """Whether nothing is left to adopt into the log of this run."""
        return self._adopt is None or self._adopted_run == run

    def attempt(self, router: Router, run: str, lost: kernel.LogLost | None) -> bool:
        """Adopt what is already running, unless that has been done. Returns False if the supervisor has to retry."""
        if self._adopt is None or self.is_done(run):  # the first check is for the type checker
            return True
        self._phase("adopting")
        reason = self._adopt(router, run, lost)
        if reason and reason != self._logged:  # log a reason once, however long it lasts
            self._logged = reason
            log.warning("waiting to adopt what runs", error=reason)
        if reason:
            return False
        self._adopted_run = run
        self._phase("acquiring")
        return True

    def repeat(self) -> None:
        """Make `attempt` adopt again, because the log has lost entries."""
        self._adopted_run = ""
