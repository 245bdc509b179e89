"""Draws sequence diagrams from a small text format.

Input: text. Output: an SVG. One statement per line:

    title One step of a host
    Host, Ledger, Store           participants, from left to right
    Host -> Store: step(step)     a call or message
    Store --> Host: Committed     a reply
    Host -> Host: text            internal work
    note Host: text               a note; `note Host, Store` spans both

Participants are classes, and a text that begins like a call names a method of the receiver. Tests compare both with
the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scripts.diagrams import svg

_ARROW = re.compile(r"^(\w+) (-->|->) (\w+): (.+)$")
_NOTE = re.compile(r"^note (\w+)(?:, (\w+))?: (.+)$")
_SPACE = 40
_ROW = 34
_PADDING = 10
_LOOP = 26
"""The width of an arrow from a participant to itself."""


@dataclass(frozen=True)
class Arrow:
    """A message from one participant to another or to itself."""

    source: str
    target: str
    text: str
    reply: bool

    @property
    def ends(self) -> tuple[str, str]:
        """The source and the target."""
        return self.source, self.target


@dataclass(frozen=True)
class Note:
    """A remark on the lifeline of one participant, or across the lifelines from `first` to `last`."""

    first: str
    last: str
    text: str

    @property
    def ends(self) -> tuple[str, str]:
        """The first and the last participant."""
        return self.first, self.last


Statement = Arrow | Note


@dataclass(frozen=True)
class Diagram:
    """A sequence diagram: its title, its participants from left to right, and its statements from top to bottom."""

    title: str
    participants: Sequence[str]
    statements: Sequence[Statement]


def parse(text: str) -> Diagram:
    """Parse a diagram. Raises ValueError for a line that is not a statement or names an unknown participant."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    title, participants = lines[0].removeprefix("title "), lines[1].split(", ")
    statements = [_statement(line) for line in lines[2:]]
    unknown = {name for one in statements for name in one.ends} - set(participants)
    if unknown:
        raise ValueError(f"{title}: unknown participants {sorted(unknown)}, expected some of {participants}")
    return Diagram(title, participants, statements)


def _statement(line: str) -> Statement:
    if arrow := _ARROW.match(line):
        return Arrow(arrow[1], arrow[3], arrow[4], reply=arrow[2] == "-->")
    if note := _NOTE.match(line):
        return Note(note[1], note[2] or note[1], note[3])
    raise ValueError(f"not a statement: {line!r}; expected `A -> B: text`, `A --> B: text` or `note A: text`")


def draw(sequence: Diagram) -> str:
    """Return the SVG of a sequence."""
    places = _places(sequence)
    top = svg.LINE + 2 * _PADDING
    bottom = top + _ROW * (len(sequence.statements) + 1)
    width = max(_right_end(one, places) for one in sequence.statements)
    width = max(width, *(places[name] + svg.width_of(name) / 2 + _PADDING for name in sequence.participants)) + _PADDING
    elements = []
    for name in sequence.participants:
        elements.append(svg.path([(places[name], top), (places[name], bottom)], kind="line dashed", tip=False))
        half = svg.width_of(name) / 2 + _PADDING
        elements.append(svg.box(places[name] - half, _PADDING, 2 * half, svg.LINE + _PADDING))
        elements.append(svg.label(places[name], svg.LINE + _PADDING + 2, name, kind="name", anchor="middle"))
    for row, statement in enumerate(sequence.statements, 1):
        elements += _element(statement, places, top + _ROW * row)
    return svg.page(sequence.title, width, bottom + _PADDING, elements)


def _places(sequence: Diagram) -> dict[str, float]:
    """Return the centre of each participant, far enough from its left neighbour for every text between the two."""
    number = {name: at for at, name in enumerate(sequence.participants)}
    places: dict[str, float] = {}
    for at, name in enumerate(sequence.participants):
        if not at:
            places[name] = svg.width_of(name) / 2 + 2 * _PADDING
            continue
        before = sequence.participants[at - 1]
        place = places[before] + (svg.width_of(before) + svg.width_of(name)) / 2 + 2 * _PADDING + 10
        for one in sequence.statements:
            low, high = sorted(one.ends, key=number.__getitem__)
            if high == name and low != high:
                place = max(place, places[low] + svg.width_of(one.text) + _SPACE)
            elif low == high == before and isinstance(one, Arrow):
                place = max(place, places[before] + svg.width_of(one.text) + _LOOP + _SPACE / 2)
        places[name] = place
    return places


def _right_end(one: Statement, places: dict[str, float]) -> float:
    right = max(places[name] for name in one.ends)
    if isinstance(one, Note):
        return max(right, sum(places[name] for name in one.ends) / 2 + svg.width_of(one.text) / 2) + _PADDING
    return right


def _element(one: Statement, places: dict[str, float], y: float) -> Iterator[str]:
    if isinstance(one, Note):
        yield from _note(one, places, y)
        return
    source, target = places[one.source], places[one.target]
    if source == target:
        last = source == max(places.values())  # no room to the right of the last participant
        far = source + (-_LOOP if last else _LOOP)
        yield svg.path([(source, y - 8), (far, y - 8), (far, y + 6), (source, y + 6)])
        yield svg.label(far + (-6 if last else 6), y + 3, one.text, kind="over", anchor="end" if last else "start")
        return
    yield svg.path([(source, y), (target, y)], kind="line dashed" if one.reply else "line")
    yield svg.label((source + target) / 2, y - 5, one.text, kind="over", anchor="middle")


def _note(one: Note, places: dict[str, float], y: float) -> Iterator[str]:
    left, right = sorted(places[name] for name in one.ends)
    middle, width = (left + right) / 2, max(svg.width_of(one.text) + 2 * _PADDING, right - left + 2 * _PADDING)
    start = max(middle - width / 2, 4.0)
    yield svg.box(start, y - svg.LINE, width, svg.LINE + _PADDING, kind="note")
    yield svg.label(start + width / 2, y - 1, one.text, anchor="middle")
