"""Formats the state of probes in `describe pod`: the current result and the latest raw results.

Input: the prober's states, raw results (newest first), now. Output: lines for each probe. Next:
`container_section`. kubectl has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from chronolet.cli.describe.layout import line
from chronolet.cli.printing import ages, table
from chronolet.prober.state import State
from chronolet.rules.names.durations import go_duration
from chronolet_schemas.prober import RawResult

SHOWN = 3
"""The number of raw results shown per probe."""
MOST_LOOKED_AT = 40_000
"""The number of the node's newest results to search: enough for all that are stored."""

Probes = Mapping[tuple[str, str], Sequence[str]]
"""The lines about each probe, by container and kind of probe."""
NO_PROBES: Probes = {}

_HEAD = ("Age", "Outcome", "Code", "Took", "Output")


def described(states: Iterable[State], results: Iterable[RawResult], now: int) -> Probes:
    """Return the lines about one pod's probes."""
    known = {(one.container, one.probe): one for one in states}
    last: dict[tuple[str, str], list[RawResult]] = {key: [] for key in known}
    uids = {one.uid for one in known.values()}
    missing = len(known) * SHOWN
    for _, result in zip(range(MOST_LOOKED_AT), results, strict=False):
        if not missing:
            break
        found = last.get((result.container, result.probe))
        if result.uid in uids and found is not None and len(found) < SHOWN and result not in found:
            found.append(result)
            missing -= 1
    return {key: tuple(_lines(state, last[key], now)) for key, state in known.items()}


def _lines(state: State, results: Sequence[RawResult], now: int) -> Iterator[str]:
    if state.period_milliseconds != state.definition.period_seconds * 1000:
        yield line("Period", go_duration(state.period_milliseconds), 6)
    yield line("Result", result_text(state), 6)
    if results:
        yield "      Last Results:"
        rows = [_row(one, now) for one in results]
        yield from table.lines(_HEAD, rows, indent=" " * 8)


def result_text(state: State) -> str:
    """Format a probe's result and its streak, such as `failure (last 3 of 3 failures in a row)`."""
    word = state.result or "none"
    if not state.running:
        return f"{word} (not probed: the container is not running or is stopping)"
    if state.held:
        return f"{word} (no longer probed)"
    if not state.last:
        return f"{word} (not probed yet)"
    success = state.last == "success"
    threshold = state.definition.success_threshold if success else state.definition.failure_threshold
    several = "es" if success else "s"
    if state.asked:
        return f"{word} ({state.consecutive} of {threshold} failures in a row; stop held back: the node is overloaded)"
    return f"{word} (last {state.consecutive} of {threshold} {state.last}{several} in a row)"


def _row(one: RawResult, now: int) -> Sequence[str]:
    first = one.output.strip().split("\n")[0]
    return (ages.ago(int(one.at), now), one.outcome, one.code or "-", go_duration(int(one.milliseconds)), first)
