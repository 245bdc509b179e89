"""Formats the answer to a what-if question: what differs, in numbers; then both runs side by side. Pure.

Input: `Found`. Output: text, or one JSON object. Next: the terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from chronolet.cli.printing import ages
from chronolet.cli.printing.table import lines
from chronolet.history.whatif.change import Step
from chronolet.node.whatif.result import Count, Row

_HEAD = ("TIME", "EVENT", "WHAT", "HAPPENED", "WHAT IF", "CERTAINTY")
_NOTHING = "-"
_SINGULAR = {
    "restarts": "restart",
    "stops for a failed probe": "stop for a failed probe",
    "other stops": "other stop",
    "times not ready": "time not ready",
    "removals refused": "removal refused",
}


class Found(NamedTuple):
    """The answer. `first`: the decision after which the outside world differs; `assumed`: whether something that the
    log lacks was assumed before that; `decisions`: how many recorded ones were decided with the change, not estimated.
    """

    rows: Sequence[Row]
    counts: Sequence[Count]
    first: Step | None
    assumed: bool
    decisions: int
    unknown: Sequence[str]

    @property
    def certainty(self) -> str:
        """Whether the numbers are exact."""
        return "exact" if self.first is None and not self.assumed else "estimate"


def as_text(found: Found, changes: Sequence[str]) -> str:
    """Return the answer as text, each line with its end."""
    decisions = "1 decision" if found.decisions == 1 else f"{found.decisions} decisions"
    text = [f"What if {', '.join(changes)}: {decisions} made again.", ""]
    text += [_sentence(one, found.certainty) for one in found.counts]
    if not found.counts:
        text.append(f"Nothing that is counted happened, with or without the change ({found.certainty}).")
    text += ["", _until(found)]
    if found.rows:
        text += ["", *lines(_HEAD, [_cells(row) for row in found.rows])]
    text += ["", *(f"Unknown: {one}." for one in found.unknown)] if found.unknown else []
    return "".join(f"{line}\n" for line in text)


def _sentence(one: Count, certainty: str) -> str:
    what = _SINGULAR.get(one.what, one.what.replace("s removed", " removed")) if one.changed == 1 else one.what
    if one.recorded == one.changed:
        return f"{one.subject}: {one.changed} {what}, as it happened ({certainty})"
    return f"{one.subject}: {one.changed} {what} instead of {one.recorded} ({certainty})"


def _until(found: Found) -> str:
    if found.first is None:
        assumed = "; what the log lacks is assumed, by the rules in docs/commands.md, what-if" if found.assumed else ""
        return f"The outside world does not differ in this range{assumed}."
    return (
        f"Exact up to {ages.rfc3339(found.first.at)}, when the outside world begins to differ; an estimate from there "
        "on, by the rules in docs/commands.md, what-if."
    )


def _cells(row: Row) -> tuple[str, ...]:
    number = _NOTHING if row.position is None else f"#{row.position.n}"
    return (
        ages.rfc3339(row.at),
        number,
        row.subject,
        row.recorded or _NOTHING,
        row.changed or _NOTHING,
        row.certainty,
    )


def as_json(found: Found, changes: Sequence[str]) -> str:
    """Return the answer as one JSON object. Times are in milliseconds."""
    value = {
        "changes": list(changes),
        "decisions": found.decisions,
        "certainty": found.certainty,
        "exact_until": None if found.first is None else found.first.at,
        "assumed": found.assumed,
        "counts": [one._asdict() for one in found.counts],
        "rows": [
            {
                **row._asdict(),
                "position": None if row.position is None else str(row.position),
                "recorded": row.recorded or None,
                "changed": row.changed or None,
            }
            for row in found.rows
        ],
        "unknown": list(found.unknown),
    }
    return f"{msgspec.json.encode(value).decode()}\n"
