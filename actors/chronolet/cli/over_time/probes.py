"""`chronolet history probes`: prints the outcomes of probes, as runs of equal ones, and which are not recorded.

Input: a session, two moments, pods. Output: two tables, or plain data. Next: `command`. `history.probe_outcomes` reads
what is printed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.cli.naming import pod_name
from chronolet.cli.over_time.found import Found, Table, shown_time
from chronolet.cli.printing import ages
from chronolet.cli.session import Session
from chronolet.history.probe_outcomes import Reading, Recorded
from chronolet.history.when import Located
from chronolet.rules.probes.segments.gaps import Gap, gaps
from chronolet.rules.probes.segments.segment import ProbeKey, Run, duration

RUNS = ("POD", "CONTAINER", "ATTEMPT", "PROBE", "RESULT", "COUNT", "FROM", "UNTIL", "EVERY", "TOOK", "OUTPUT")
GAPS = ("NOT RECORDED", "FROM", "UNTIL", "PROCESS", "WHY")
_WHY = {
    "dropped": "the process had more outcomes than it could write",
    "missing": "their segments are missing: Redis was away for long, or lost them",
    "older": "their segments were deleted, or are missing",
    "unwritten": "the process ended before it wrote its last outcomes, usually of less than a minute",
}
_LONGEST_OUTPUT = 80
_MOMENT = 60_000
_OPEN_GAP = 3_600_000
"""How long a gap is at most whose end is unknown, in milliseconds: segments wait that long in a process's memory."""


def find(
    node: Session,
    first: Located,
    last: Located,
    names: Sequence[str],
    *,
    namespace: str | None = None,
    container: str | None = None,
) -> Found:
    """Return the outcomes of these pods' probes (none: of all pods) that began during the time.

    `namespace`: that of the names, by default `default`; without names, only its pods. `container`: only this one.
    """
    wanted = {name: f"{namespace or 'default'}/{pod_name(name)}" for name in names}

    def is_wanted(key: ProbeKey) -> bool:
        in_scope = key.pod in wanted.values() if wanted else namespace in (None, key.pod.partition("/")[0])
        return in_scope and container in (None, key.container)

    sources = node.services.probe_sources(node.settings, node.store)
    recorded = Reading(sources, is_wanted, first.milliseconds, last.milliseconds).recorded()
    lost = [gap for gap in _gaps(node, recorded) if _overlaps(gap, first.milliseconds, last.milliseconds)]
    rows = [_row(key, run) for key, runs in recorded.runs.items() for run in runs]
    return Found(
        {
            "probes": [_plain(key, runs) for key, runs in recorded.runs.items()],
            "notRecorded": [_plain_gap(gap) for gap in lost],
        },
        (Table(RUNS, rows), Table(GAPS, [_gap_row(gap) for gap in lost])),
        missing=[name for name, pod in wanted.items() if not any(key.pod == pod for key in recorded.runs)],
        notes=(*recorded.problems, *_begin(recorded, lost, first.milliseconds)),
    )


def _begin(recorded: Recorded, lost: Sequence[Gap], first: int) -> Iterator[str]:
    """Yield where the recorded outcomes begin, if that is later than asked, by more than a moment or because older ones
    were deleted.
    """
    if recorded.begin is None or recorded.older:
        return
    if recorded.begin > first + _MOMENT or any(gap.why == "older" for gap in lost):
        yield f"the recorded outcomes begin at {ages.rfc3339(recorded.begin)}"


def _gaps(node: Session, recorded: Recorded) -> list[Gap]:
    alive = node.store.alive()
    newest = dict(sorted((head.process, head.started) for head in recorded.heads))
    found = gaps(recorded.heads, lambda process, started: process in alive and newest[process] == started)
    # Older files were not read, so what is missing at the beginning may be in them.
    return [gap for gap in found if gap.why != "older" or not recorded.older]


def _overlaps(gap: Gap, first: int, last: int) -> bool:
    until = gap.first + _OPEN_GAP if gap.last is None else gap.last
    return gap.first <= last and until >= first


# -- rows
def _row(key: ProbeKey, run: Run) -> list[str]:
    return [
        key.pod,
        key.container,
        str(key.attempt),
        key.probe,
        f"{run.outcome} {run.code}".strip(),
        str(len(run.starts)),
        shown_time(min(run.starts)),
        shown_time(max(run.starts)),
        _span(_pauses(run)),
        _span([duration(code) for code in run.took]),
        _output(run),
    ]


def _pauses(run: Run) -> list[int]:
    """Return the times between the starts of a run's probes."""
    return [later - earlier for earlier, later in itertools.pairwise(sorted(run.starts))]


def _span(durations: Sequence[int]) -> str:
    """Format the median, and the maximum if it is much longer."""
    if not durations:
        return "<none>"
    ordered = sorted(durations)
    median, longest = ordered[len(ordered) // 2], ordered[-1]
    return _short(median) if longest < 2 * max(median, 1) else f"{_short(median)}, up to {_short(longest)}"


def _short(milliseconds: int) -> str:
    """Format a duration: below ten seconds in milliseconds or tenths of seconds."""
    if milliseconds < 1_000:  # noqa: PLR2004 - a second
        return f"{milliseconds}ms"
    if milliseconds < 10_000:  # noqa: PLR2004 - ten seconds
        return f"{milliseconds / 1000:.1f}".removesuffix(".0") + "s"
    return ages.human(milliseconds)


def _output(run: Run) -> str:
    shown = run.output.strip()[:_LONGEST_OUTPUT] or "<none>"
    return f"{shown} (and others)" if run.differing else shown


def _gap_row(gap: Gap) -> list[str]:
    count = "<unknown>" if gap.outcomes is None else str(gap.outcomes)
    until = "<unknown>" if gap.last is None else shown_time(gap.last)
    return [count, shown_time(gap.first), until, gap.process, _WHY[gap.why]]


# -- plain data
def _plain(key: ProbeKey, runs: Sequence[Run]) -> dict[str, Any]:
    """Return a probe as plain data; times and durations are in milliseconds."""
    namespace, _, pod = key.pod.partition("/")
    return {
        "namespace": namespace,
        "pod": pod,
        "uid": key.uid,
        "container": key.container,
        "attempt": key.attempt,
        "id": key.id,
        "probe": key.probe,
        "runs": [_plain_run(run) for run in runs],
    }


def _plain_run(run: Run) -> dict[str, Any]:
    return {
        "outcome": run.outcome,
        "code": run.code,
        "output": run.output,
        "otherOutputs": run.differing,
        "from": min(run.starts),
        "until": max(run.starts),
        "at": list(run.starts),
        "took": [duration(code) for code in run.took],
    }


def _plain_gap(gap: Gap) -> dict[str, Any]:
    known = {"until": gap.last, "outcomes": gap.outcomes}
    found = {"process": gap.process, "from": gap.first, "why": gap.why}
    return found | {name: value for name, value in known.items() if value is not None}
