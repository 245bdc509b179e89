"""The rows of the table: where each value comes from, and the goal for its ratio to the other agent's value.

Input: the results of `agent_bench` from several rounds with each agent. Output: figures. Next: `other_agents`.

A row is a percentile of the samples from all rounds together, because a single round proves little.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.bench.agent_bench import pct
from tests.bench.figures import Figure

Found = dict[str, Any]
"""The output of one run of `agent_bench`."""

ALONE_GOAL, STOP_GOAL, LAST_GOAL = 0.9, 0.9, 1.0


class Part(NamedTuple):
    """One test of `agent_bench`: the number of rounds per agent, and the options for each round."""

    rounds: int
    options: Sequence[str]
    batches: Sequence[int] = ()
    steady: Sequence[str] = ()


class Row(NamedTuple):
    """A percentile of samples; `goal` is for the ratio of chronolet to the other agent."""

    name: str
    samples: Callable[[Found], Sequence[float | None]]
    unit: str = "s"
    percent: int = 50
    goal: float | None = None


def _part(rounds: int, *options: str, batches: Sequence[int] = (), steady: Sequence[str] = ()) -> Part:
    lists = {"--batches": ",".join(map(str, batches)), "--steady": ",".join(steady)}
    given = [word for name, value in lists.items() if value for word in (name, value)]
    return Part(rounds, (*options, *given), batches, steady)


_STEADY = ("--steady-fthr", "3")
FULL: Mapping[str, Part] = {
    "a": _part(3, "--reps", "10"),
    "b": _part(3, "--reps", "10"),
    "c": _part(4, "--reps", "10"),
    "batch": _part(3, batches=(10, 30, 60)),
    "e": _part(3, "--restart-reps", "1", "--restart-pods", "30"),
    "d": _part(1, *_STEADY, steady=("0:none", "30:none", "30:http", "30:exec")),
}
QUICK: Mapping[str, Part] = {
    "a": _part(1, "--reps", "2"),
    "b": _part(1, "--reps", "2"),
    "c": _part(1, "--reps", "2"),
    "batch": _part(1, batches=(5,)),
    "e": _part(1, "--restart-reps", "1", "--restart-pods", "5"),
    "d": _part(1, *_STEADY, "--window", "8", "--settle", "3", steady=("0:none", "5:none", "5:http", "5:exec")),
}
"""The parts, named as the tests of the harness: `a` includes test f, and `d` includes memory."""


def of(name: str, part: Part) -> Iterator[Row]:
    """Yield the rows of a part."""
    match name:
        case "batch":
            for pods in part.batches:
                yield from _batch(pods)
        case "d":
            for index, steady in enumerate(part.steady):
                yield from _steady(index, steady)
        case _:
            yield from ROWS[name]


def _batch(pods: int) -> Iterator[Row]:
    for what, goal in (("first", None), ("median", None), ("last", LAST_GOAL)):
        yield Row(f"batch of {pods}, {what} start", _batched(pods, what), goal=goal)
    yield Row(f"batch of {pods}, removed to all stopped", lambda found: [_of(found, pods)["remove"]["all_stopped"]])


def _batched(pods: int, what: str) -> Callable[[Found], Sequence[float | None]]:
    return lambda found: [_of(found, pods)[what]]


def _of(found: Found, pods: int) -> Found:
    return next(one for one in found["a_batch"] if one["n"] == pods)


def _steady(index: int, steady: str) -> Iterator[Row]:
    pods, _, probe = steady.partition(":")
    what = f"{pods} pods" if probe == "none" else f"{pods} pods, {probe}"
    for name, field, unit in (("CPU", "agent_cpu_s_per_min", "s/min"), ("resident memory", "agent_rss_mib", "MiB")):
        yield Row(f"d. {name}, {what}", lambda found, field=field: [found["d_steady"][index][field]], unit)  # type: ignore[misc]


def _all(field: str) -> Callable[[Found], Sequence[float | None]]:
    return lambda found: found[field].get("all", ())


def _broken(kind: str) -> Callable[[Found], Sequence[float | None]]:
    return lambda found: found[f"c_{kind}"]["break_to_new_start"].get("all", ())


def _comeback(found: Found) -> Sequence[float | None]:
    return [one["agent_start_to_container_start"] for one in found["e_agent_restart"]["reps"]]


def _disturbed(found: Found) -> Sequence[float]:
    return [one["disturbed"] for one in found["e_agent_restart"]["reps"]]


def _scattered(name: str, samples: Callable[[Found], Sequence[float | None]]) -> tuple[Row, Row]:
    return Row(f"{name}, median", samples), Row(f"{name}, p99", samples, percent=99)


ROWS: Mapping[str, Sequence[Row]] = {
    "a": (
        Row("a. manifest to start, one pod", _all("a_single_start"), goal=ALONE_GOAL),
        Row("f. manifest gone to everything stopped", _all("f_single_remove_all_stopped"), goal=STOP_GOAL),
    ),
    "b": _scattered("b. kill to new start", _all("b_restart_kill_to_start")),
    "c": (
        *_scattered("c. exec liveness, break to new start", _broken("exec")),
        *_scattered("c. http liveness, break to new start", _broken("http")),
    ),
    "e": (Row("e. agent killed, start to acting", _comeback), Row("e. other containers disturbed", _disturbed, "")),
}
"""The rows of all parts except `batch` and `d`, whose rows depend on their options."""


def compared(row: Row, ours: Sequence[Found], theirs: Sequence[Found], who: str) -> Figure:
    """Return chronolet's row next to that of the agent `who`. If a measured event never happened, the value is
    infinite.
    """
    turns = {of: [list(row.samples(found)) for found in each] for of, each in (("ours", ours), (f"{who}'s", theirs))}
    mine, other = (_percentile(each, row.percent) for each in turns.values())
    medians = "; ".join(f"{of} {', '.join(map(_median, each))}" for of, each in turns.items())
    # A ratio to zero means nothing.
    reference = {"reference": other, "reference_name": who} if other else {}
    return Figure(
        name=row.name,
        ours=mine,
        unit=row.unit,
        **reference,  # type: ignore[arg-type]
        goal=row.goal if other else None,
        note=f"median of each turn: {medians}" if len(ours) > 1 or not other else "",
    )


def _percentile(turns: Sequence[Sequence[float | None]], percent: int) -> float:
    samples = [math.inf if one is None else one for turn in turns for one in turn]
    return float(pct(samples, percent)) if samples and math.inf not in samples else math.inf


def _median(turn: Sequence[float | None]) -> str:
    seen = [one for one in turn if one is not None]
    return f"{statistics.median(seen):.3g}" if seen else "none"
