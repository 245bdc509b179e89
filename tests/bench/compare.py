"""`scripts/bench compare`: short versions of `pods` and `probes`, each figure next to the last merged one. CI runs it.

Input: `last.json`. Output: one figure per row: its ratio to bare Docker calls in the same run, or its plain value if
there are no such calls, next to its last value. A row that is more than a fifth worse misses its goal, which does not
fail the run; a row that could not be measured fails the run. With `--write`, the new values replace `last.json`.

Rows that mean nothing after so short a run are omitted: slowest times and 99th percentiles of three samples, the CPU
time of an agent without probes, and the churn. The rows for 220 probes a second are omitted as well, because part `d`
already measures ten pods with probes.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from tests.bench.bare_docker import Bare, warmed_up
from tests.bench.figures import UNMEASURED, Figure
from tests.bench.pods import attempted, broken, parts
from tests.bench.pods.agent import Agent, running

LAST = Path(__file__).with_name("last.json")
WORSE = 1.2
UNPROTECTED = {"CHRONOLET_PROBE_OVERLOAD_PROTECTION": "false"}
"""Environment of an agent without overload protection. On a busy machine the protection would delay stops for failed
probes by a minute, and row c would be missing.
"""
PODS = 10
WORKERS = (4,)
SCATTERED = ("p99", "the slowest")
"""Name suffixes of the rows to omit."""
UNITS = ("s", "CPU s/min", "MiB")
"""Units for which a smaller value is better; only rows with these units are compared."""
IDLE, PROBED = ("0:none",), (f"{PODS}:exec",)
IDLE_OPTIONS, PROBED_OPTIONS = ("--window", "2"), ("--window", "10", "--settle", "3", "--steady-fthr", "3")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `last.json`: a value in `unit`, or a multiple of the reference that `unit` names."""

    value: float
    unit: str


def figures(options: argparse.Namespace) -> Sequence[Figure]:
    """Measure the selected parts, by default all; return each row next to its last value, then the parts that could not
    be measured. With `--write`, the new values replace the last ones unless a row could not be measured.
    """
    os.environ |= {"PYTHONUNBUFFERED": "1", **UNPROTECTED}
    found: list[Figure] = []
    with running(in_network=True) as agent:
        bare = warmed_up(agent.docker.host)
        for name, part in PARTS.items():
            if not options.only or name in options.only:
                began = time.monotonic()
                found += attempted(lambda part=part: part(agent, bare))  # type: ignore[misc]
                _say(f"{name} took {time.monotonic() - began:.0f} s; load {os.getloadavg()[0]:.1f}")
    failed = [figure for figure in found if figure.name == UNMEASURED]
    now, last = rows(found), read()
    shown = compared(now, last, whole=not (options.only or options.write or failed))
    if options.write and not failed and all(figure.name != UNMEASURED for figure in shown):
        write(last | now if options.only else now)
    return [*shown, *failed]


def _starts(agent: Agent, bare: Bare) -> list[Figure]:
    """Measure one pod, then a batch of pods."""
    alone = parts.single(agent, bare, 3)
    return [*alone, *parts.batch(agent, bare, (PODS,), WORKERS, alone[0].ours)]


def _steady(agent: Agent) -> list[Figure]:
    """Measure memory, and CPU time with probes, using test d of the harness."""
    idle = parts.measured_steady(agent, IDLE, *IDLE_OPTIONS, quick=True)
    probed = parts.measured_steady(agent, PROBED, *PROBED_OPTIONS, quick=True)
    memory = [parts.memory(one, f"d. resident memory of both, {parts.configuration(one)}") for one in (*idle, *probed)]
    return [*(parts.cpu(one, f"d. agent and Redis, {parts.configuration(one)}") for one in probed), *memory]


PARTS: Mapping[str, Callable[[Agent, Bare], list[Figure]]] = {
    "a": _starts,
    "b": lambda agent, bare: parts.restart(agent, bare, 3),
    "c": lambda agent, bare: broken.figures(agent, bare, 3),
    "e": lambda agent, _: parts.comeback(agent, PODS, 1),
    "d": lambda agent, _: _steady(agent),
}
"""The parts, named as in `pods` and `probes`; `a` includes the batch."""


def rows(found: Sequence[Figure]) -> dict[str, Row]:
    """Return the rows to compare, by name."""
    return {
        figure.name: _row(figure) for figure in found if figure.unit in UNITS and not figure.name.endswith(SCATTERED)
    }


def _row(figure: Figure) -> Row:
    if figure.ratio is None:
        return Row(value=round(figure.ours, 4), unit=figure.unit)
    return Row(value=round(figure.ratio, 4), unit=f"x {figure.reference_name.removeprefix('s ').removeprefix('by ')}")


def compared(now: Mapping[str, Row], last: Mapping[str, Row], *, whole: bool) -> list[Figure]:
    """Return each row next to its last value. `whole`: all parts were measured, so a row that is absent now is reported
    as missing.
    """
    found = [_compared(name, row, last.get(name)) for name, row in now.items()]
    missing = [name for name in last if name not in now] if whole else []
    return [*found, *(unmeasured(name, "it was measured before; `--write` forgets it") for name in missing)]


def _compared(name: str, row: Row, before: Row | None) -> Figure:
    if not math.isfinite(row.value):
        return unmeasured(name, "it never happened")
    if before is None or before.unit != row.unit or not before.value:
        return Figure(name=name, ours=row.value, unit=row.unit)
    return Figure(name=name, ours=row.value, unit=row.unit, reference=before.value, reference_name="before", goal=WORSE)


def unmeasured(name: str, why: str) -> Figure:
    """Return a row that fails the run."""
    return Figure(name=UNMEASURED, ours=math.inf, unit="", goal=0, note=f"{name}: {why}")


def read(path: Path = LAST) -> dict[str, Row]:
    """Return the last merged figures, or an empty dict if there is no file. Raises msgspec.DecodeError if the content
    is invalid.
    """
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Row]) if path.exists() else {}


def write(found: Mapping[str, Row], path: Path = LAST) -> None:
    """Write the figures with which later runs are compared."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


def _say(text: str) -> None:
    print(f"==> compare: {text}", file=sys.stderr, flush=True)  # noqa: T201
