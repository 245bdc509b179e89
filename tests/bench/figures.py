"""Results of a benchmark: figures next to their references and goals, as a table and as JSON.

Input: measured values. Output: text for people, JSON for programs. A missed goal is marked in its row.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

import msgspec

UNMEASURED = "could not be measured"
"""Name of the row for a part that failed."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One row. The goal bounds `compared`: `ours / reference`, or `ours` itself if there is no reference or the goal is
    `absolute`.
    """

    name: str
    ours: float
    unit: str
    reference: float | None = None
    reference_name: str = ""
    goal: float | None = None
    bound: Literal["at least", "at most"] = "at most"
    absolute: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """`ours / reference`; None if there is no reference."""
        return None if self.reference is None else self.ours / self.reference

    @property
    def compared(self) -> float:
        return self.ours if self.ratio is None or self.absolute else self.ratio

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None if the row has no goal."""
        if self.goal is None:
            return None
        return self.compared >= self.goal if self.bound == "at least" else self.compared <= self.goal

    def row(self) -> tuple[str, ...]:
        reference = "-" if self.reference is None else f"{_number(self.reference)} {self.reference_name}".strip()
        ratio = "-" if self.ratio is None else f"{self.ratio:.2f}"
        goal = "-" if self.goal is None else f"{'>=' if self.bound == 'at least' else '<='} {self.goal:g}"
        met = {True: "yes", False: "NO", None: "-"}[self.met]
        return self.name, f"{_number(self.ours)} {self.unit}".strip(), reference, ratio, goal, met

    def plain(self) -> dict[str, Any]:
        """Return the figure's fields for JSON, with `compared` and `met` but without empty fields."""
        compared = {"compared": self.compared, "met": self.met}
        return {
            name: value
            for name, value in (msgspec.to_builtins(self) | compared).items()
            if value not in (None, "") and (name, value) != ("absolute", False)
        }


def table(figures: Sequence[Figure]) -> str:
    """Return all rows under their headings, followed by the notes."""
    rows = [("figure", "ours", "reference", "ratio", "goal", "met"), *(figure.row() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [f"* {figure.name}: {figure.note}" for figure in figures if figure.note]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def as_json(benches: Mapping[str, Sequence[Figure]]) -> str:
    """Return all figures of all benchmarks as JSON, with the machine's load, on which absolute figures depend."""
    load = Path("/proc/loadavg").read_text(encoding="ascii").split()[:3]
    found = {name: [figure.plain() for figure in figures] for name, figures in benches.items()}
    # An infinite value means that the measured event never happened; in JSON it is null.
    return msgspec.json.format(msgspec.json.encode({"load": load, **found}), indent=1).decode()


def interleaved(cases: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the median of each case over several rounds; the cases are shuffled each round, with a fixed seed."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    order, chance = list(cases), Random(7)
    for _ in range(rounds):
        chance.shuffle(order)
        for name in order:
            found[name].append(cases[name]())
    return {name: statistics.median(values) for name, values in found.items()}


def _number(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"
