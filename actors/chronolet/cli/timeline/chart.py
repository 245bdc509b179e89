"""Draws rows of spans and marks as text, one character per part of the time. Pure.

Input: rows, the time that they cover, a width. Output: lines: an axis, one line per row, a legend. Next: the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from chronolet.cli.printing.axis import ROUND_DURATIONS
from chronolet.cli.printing.table import plain
from chronolet.cli.timeline.spans import Row, Span

_GAP = 2
_RESTARTS = "RESTARTS"
_LEAST_CELLS = 10
_LABEL_SHARE = 3
"""Labels take at most this part of the width: a third."""

_CUT = ".."
_LEAST_OF_POD = 4
"""The least number of characters of a shortened pod's name."""


class Sign(NamedTuple):
    """How a condition or a mark is drawn: a character, its ASCII replacement, a colour, its explanation."""

    character: str
    ascii: str
    colour: str
    text: str


CONDITIONS: Mapping[str, Sign] = {
    "failed": Sign("╌", "~", "red", "ended with an error"),
    "backing_off": Sign("·", ".", "red", "backing off"),
    "running": Sign("▒", "-", "yellow", "running, not ready"),
    "starting": Sign("░", ":", "blue", "starting"),
    "ready": Sign("█", "=", "green", "ready"),
    "completed": Sign("─", "_", "", "completed"),
}
"""The signs of conditions. If a character stands for several of them, the first in this order is drawn."""
MARKS: Mapping[str, Sign] = {
    "oom": Sign("O", "O", "bright_red", "killed for lack of memory"),
    "probe_kill": Sign("K", "K", "bright_red", "stopped because of a probe"),
    "error": Sign("E", "E", "bright_red", "ended with an error"),
    "restart": Sign("R", "R", "bright_yellow", "restarted"),
    "probe_failed": Sign("!", "!", "yellow", "a probe failed"),
    "probe_unjudged": Sign("?", "?", "yellow", "a probe without a verdict"),
}
"""The signs of marks, in the same order. A mark hides the condition."""


class Axis(NamedTuple):
    """The time that a chart covers, in milliseconds since the epoch, and in how many characters."""

    begin: int
    end: int
    cells: int

    def cell(self, at: int) -> int:
        """Return the character that stands for a time; times outside count as the nearest one inside."""
        span = max(self.end - self.begin, 1)
        return min(max((at - self.begin) * self.cells // span, 0), self.cells - 1)


class Style(NamedTuple):
    """What the terminal can show. `paint` colours text; it returns it unchanged where there are no colours."""

    ascii: bool
    paint: Callable[[str, str], str]
    label: Callable[[int, int], str]
    """Formats the time of a label of the axis; the second argument is the distance between labels."""
    offset: int
    """The time zone's offset from UTC in milliseconds, so that labels are at whole hours."""


def chart(rows: Sequence[Row], begin: int, end: int, width: int, style: Style) -> Iterator[str]:
    """Yield the lines of the chart, none wider than `width`, unless that is too narrow for any chart."""
    labels = _labels(rows, width // _LABEL_SHARE)
    room = max(len(one) for one in labels)
    axis = Axis(begin, end, max(width - room - 2 * _GAP - len(_RESTARTS), _LEAST_CELLS))
    yield f"{'':{room + _GAP}}{_ruler(axis, style):{axis.cells}}{'':{_GAP}}{_RESTARTS}"
    used: dict[str, Sign] = {}
    for label, row in zip(labels, rows, strict=True):
        signs = _signs(row, axis)
        used |= {name: sign for name, sign in signs if sign is not None}
        yield f"{label:{room + _GAP}}{_drawn(signs, style)}{'':{_GAP}}{row.restarts or ''}".rstrip()
    yield ""
    yield from _legend(used, width, style)


def _labels(rows: Sequence[Row], most: int) -> list[str]:
    """Return `pod/container` for each row, or `namespace/pod/container` outside the namespace `default`."""
    labels = [plain(f"{one.pod}/{one.container}".removeprefix("default/")) for one in rows]
    return [_shortened(one, most) for one in labels]


def _shortened(label: str, most: int) -> str:
    """Shorten the middle of what is before the container: its end tells pods of one set apart. Shorten the container
    only if there is too little room for both.
    """
    if len(label) <= most:
        return label
    pod, slash, container = label.rpartition("/")
    room = most - len(slash) - len(container) - len(_CUT)
    if room < _LEAST_OF_POD:
        pod, slash, container, room = label, "", "", max(most - len(_CUT), 1)
    end = room // 2
    return f"{pod[: room - end]}{_CUT}{pod[len(pod) - end :]}{slash}{container}"


def _signs(row: Row, axis: Axis) -> list[tuple[str, Sign | None]]:
    """Return the name and the sign of each character; no sign where the container does not exist."""
    signs: list[tuple[str, Sign | None]] = [("", None)] * axis.cells
    for name, sign in reversed(tuple(CONDITIONS.items())):
        for span in row.spans:
            if span.condition == name:
                signs[_first(span, axis) : _last(span, axis) + 1] = [(name, sign)] * _length(span, axis)
    for name, sign in reversed(tuple(MARKS.items())):
        for mark in row.marks:
            if mark.what == name and axis.begin <= mark.at <= axis.end:
                signs[axis.cell(mark.at)] = (name, sign)
    return signs


def _first(span: Span, axis: Axis) -> int:
    return axis.cell(span.begin)


def _last(span: Span, axis: Axis) -> int:
    """Return the last character of a span: one that ends where a character begins ends before it."""
    return max(axis.cell(max(span.end - 1, span.begin)), _first(span, axis))


def _length(span: Span, axis: Axis) -> int:
    return _last(span, axis) + 1 - _first(span, axis)


def _drawn(signs: Sequence[tuple[str, Sign | None]], style: Style) -> str:
    """Return the characters, coloured in runs of one sign, so that there are few escape sequences."""
    parts: list[tuple[Sign | None, int]] = []
    for _, sign in signs:
        if parts and parts[-1][0] == sign:
            parts[-1] = (sign, parts[-1][1] + 1)
        else:
            parts.append((sign, 1))
    return "".join(" " * count if sign is None else _painted(sign, count, style) for sign, count in parts)


def _painted(sign: Sign, count: int, style: Style) -> str:
    text = (sign.ascii if style.ascii else sign.character) * count
    return style.paint(text, sign.colour) if sign.colour else text


def _legend(used: Mapping[str, Sign], width: int, style: Style) -> Iterator[str]:
    """Yield lines that explain the signs in use."""
    line, length = "", 0
    for name, sign in (*CONDITIONS.items(), *MARKS.items()):
        if name not in used:
            continue
        size = len(sign.text) + 2
        if line and length + _GAP + size > width:
            yield line
            line, length = "", 0
        line += f"{'':{_GAP if line else 0}}{_painted(sign, 1, style)} {sign.text}"
        length += size + (_GAP if length else 0)
    if line:
        yield line


def _ruler(axis: Axis, style: Style) -> str:
    """Return the axis: labels at round times, as many as fit, each beginning at its time."""
    text = ""
    span = max(axis.end - axis.begin, 1)
    step = next((one for one in ROUND_DURATIONS if _fits(one, axis, span, style)), ROUND_DURATIONS[-1])
    at = -(-(axis.begin + style.offset) // step) * step - style.offset
    while at <= axis.end:
        cell, label = (at - axis.begin) * axis.cells // span, style.label(at, step)
        if cell + len(label) <= axis.cells and (not text or cell > len(text)):
            text = f"{text:{cell}}{label}"
        at += step
    return text


def _fits(step: int, axis: Axis, span: int, style: Style) -> bool:
    return step * axis.cells // span > len(style.label(axis.begin, step)) + _GAP
