"""Whether a claim about a container is news. Pure.

Comes in: the Run that is known (or None) and a claim. Goes out: yes or no. Next: `decider`. Within one run a
container only moves created < running < exited; a start after the known end is a new run of the same id (DESIGN 5,
"Whose truth"). So is a start at quite another time, whatever the clock said at the known end: it may have been set back
since.
"""

from __future__ import annotations

from chronolet.pleg.signals import Seen
from chronolet.pleg.state import Run

_SAME_START_MS = 1000
"""A notice's time and the start time of an inspect are about the same start when they are no further apart."""

_DELAYED_NOTICE_MS = 60_000
"""A notice of a start is written after the start time that an inspect shows, later by at most this. A start that is
earlier than the known one by more than this is another one."""

_RANK = {"": 0, "created": 1, "running": 2, "exited": 3, "removed": 4}


def is_news(run: Run | None, seen: Seen) -> bool:
    """True if the claim is neither known nor older than what is known."""
    if run is None:
        return seen.state != "removed"
    if seen.state == "unknown":
        # A death was told: that nothing can be told now (it is being removed) does not take it back.
        return not run.unknown and run.state != "exited"
    if seen.state == "removed":
        return True
    if run.unknown and seen.state == run.state:
        return True
    if _RANK[seen.state] > _RANK[run.state]:
        return not _earlier_end(run, seen)
    return _new_run(run, seen)


def _earlier_end(run: Run, seen: Seen) -> bool:
    """The death of a run that was over before the known one began.

    Of what ends at once Docker may note the start after the end: its end is not an earlier run's for that.
    """
    if seen.detailed and abs(seen.started_at - run.started_at) <= _SAME_START_MS:
        return False
    return 0 < seen.finished_at < run.started_at


def _new_run(run: Run, seen: Seen) -> bool:
    if seen.state == "created":
        return False
    if run.state == "exited" and seen.started_at > max(run.finished_at, run.started_at):
        return True
    return seen.detailed and _another_start(run, seen.started_at)


def _another_start(run: Run, started_at: int) -> bool:
    """Neither the known start nor the one before it, of which a listing may still tell that was begun earlier."""
    if not started_at or not run.started_at:
        return False
    if run.before and abs(started_at - run.before) <= _SAME_START_MS:
        return False
    return started_at > run.started_at + _SAME_START_MS or started_at < run.started_at - _DELAYED_NOTICE_MS
