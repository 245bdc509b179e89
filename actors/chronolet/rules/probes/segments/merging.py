"""Joins the segments of each process, as an archive file has them. Pure.

Input: segments, in the order in which they were written. Output: fewer segments with the same outcomes; a process has
several only if one of its segments is missing in between. A segment that was written twice counts once. Next:
`file_format`.
"""

from __future__ import annotations

from collections.abc import Iterable

from chronolet.rules.probes.segments.segment import Run, Segment, joined


def merged(segments: Iterable[Segment]) -> list[Segment]:
    """Return the merged segments, in the order in which each one's first part was written. The given ones are used up:
    their runs may become parts of others.
    """
    found: list[Segment] = []
    newest: dict[tuple[str, int], Segment] = {}
    for segment in segments:
        who = (segment.process, segment.started)
        former = newest.get(who)
        if former is not None and segment.upto <= former.upto:
            continue  # written twice: the reply to the first attempt was lost
        if former is not None and segment.number == former.upto + 1:
            _append(former, segment)
        else:
            found.append(segment)
            newest[who] = segment
    return found


def _append(former: Segment, later: Segment) -> None:
    former.upto, former.end, former.ended = later.upto, later.end, later.ended
    former.lost = joined(former.lost, later.lost)
    for key, runs in later.runs.items():
        add_runs(former.runs.setdefault(key, []), runs)


def add_runs(former: list[Run], later: Iterable[Run]) -> None:
    """Append a probe's later runs to its former ones, in place; equal neighbours become one run."""
    for run in later:
        if former and former[-1].continues(run):
            former[-1].extend(run)
        else:
            former.append(run)
