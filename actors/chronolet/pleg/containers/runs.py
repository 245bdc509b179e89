"""Decides whether an observation of a container is new: neither already known nor outdated. Pure.

Input: the known Run (or None) and an observation. Output: a bool. Next: `changes`. Within one run, a container only
moves forward: created, running, exited. A start after the known end begins a new run of the same container. So does a
start at a clearly different time, even one before the known end, because the clock may have been set back.
"""

from __future__ import annotations

from chronolet.pleg.signals import ContainerObserved
from chronolet.pleg.state import Run

_SAME_START_MS = 1000
"""Start times from notices and inspects that differ by at most this belong to the same start."""

_DELAYED_NOTICE_MS = 60_000
"""Maximum delay of a start notice after the start time that an inspect shows. A start that is earlier than the known
one by more than this is a different start."""

_RANK = {"": 0, "created": 1, "running": 2, "exited": 3, "removed": 4}


def is_news(run: Run | None, observed: ContainerObserved) -> bool:
    """Whether the observation is neither already known nor older than the known state."""
    if run is None:
        return observed.state != "removed"
    if observed.state == "unknown":
        # The death was already reported; an unknown state now (the container is being removed) does not revoke it.
        return not run.unknown and run.state != "exited"
    if observed.state == "removed":
        return True
    if run.unknown and observed.state == run.state:
        return True
    if _RANK[observed.state] > _RANK[run.state]:
        return not _earlier_end(run, observed)
    return _new_run(run, observed)


def _earlier_end(run: Run, observed: ContainerObserved) -> bool:
    """Whether `observed` is the death of a run that ended before the known run began.

    If a container exits immediately, Docker may record a start time after the exit; that exit still belongs to the
    known run.
    """
    if observed.detailed and abs(observed.started_at - run.started_at) <= _SAME_START_MS:
        return False
    return 0 < observed.finished_at < run.started_at


def _new_run(run: Run, observed: ContainerObserved) -> bool:
    if observed.state == "created":
        return False
    if run.state == "exited" and observed.started_at > max(run.finished_at, run.started_at):
        return True
    return observed.detailed and _another_start(run, observed.started_at)


def _another_start(run: Run, started_at: int) -> bool:
    """Whether `started_at` is neither the known start nor the previous one, which a listing begun earlier may still
    report.
    """
    if not started_at or not run.started_at:
        return False
    if run.before and abs(started_at - run.before) <= _SAME_START_MS:
        return False
    return started_at > run.started_at + _SAME_START_MS or started_at < run.started_at - _DELAYED_NOTICE_MS
