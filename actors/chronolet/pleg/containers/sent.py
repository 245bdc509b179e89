"""Remembers which signals the runtime's clients had it send to each run of a container. Pure.

Input: the notices of one stream, in order. Output: `Sent`, for a death. Next: `observations`.
"""

from __future__ import annotations

from chronolet.pleg.containers.observations import NOT_KNOWN, Sent
from chronolet.ports.runtime.runtime import Notice

_MOST = 8
"""The number of signals to one run that are remembered: the newest ones explain its death."""


class SentSignals:
    """The signals of one stream of notices. Those that were sent before the stream was opened are not known."""

    def __init__(self) -> None:
        self._runs: dict[str, Sent] = {}
        """The runs whose start, or a signal to which, was noticed, by the container's id."""

    def until(self, notice: Notice) -> Sent:
        """Process a notice. Return what was sent to the container's run up to it.

        Nobody sent anything only if the run's start was noticed, too. A label that hides the numbers is in every notice
        of its container, so it is in that of the death, too.
        """
        known = self._runs.pop(notice.id, NOT_KNOWN)
        if notice.signal is None:
            return NOT_KNOWN
        if notice.action == "start":
            known = Sent(())
        elif notice.action == "kill":
            known = Sent((*(known.signals or ()), notice.signal)[-_MOST:], notice.at)
        if known.signals is not None and notice.action not in ("die", "destroy"):
            self._runs[notice.id] = known
        return known
