"""Draws state diagrams from transition tables, in one column.

Input: a Table. Output: an SVG. Each phase is one layer, in the order of the table. Events that do not change the phase
are listed in its box. An edge to the next layer goes straight down, an edge to a later layer along the right side, and
an edge to an earlier layer along the left side. Every edge has a separate row at both of its boxes, and every label is
next to its source, so nothing overlaps, however large the table is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scripts.diagrams import svg
from scripts.diagrams.tables import NOTHING, Table

BEGINNING, END = "not there yet", "gone"
_LANE = 14
_GAP = 28
_PADDING = 8


@dataclass(frozen=True)
class Edge:
    """An edge of the diagram: all events that lead from one layer to another."""

    source: int
    target: int
    events: tuple[str, ...]

    @property
    def straight(self) -> bool:
        """Whether the edge leads to the next layer."""
        return self.target == self.source + 1

    @property
    def span(self) -> int:
        """The number of layers that the edge spans."""
        return abs(self.target - self.source)


@dataclass
class Side:
    """The edges along one side: the lane of each edge, and the edges at each layer, one per row from top to bottom."""

    edges: Sequence[Edge]
    lanes: dict[Edge, int] = field(default_factory=dict)
    rows: Mapping[int, Sequence[Edge]] = field(default_factory=dict)

    @property
    def label_width(self) -> float:
        """The width of the longest label."""
        return max((svg.width_of(event) for edge in self.edges for event in edge.events), default=0.0)

    @property
    def width(self) -> float:
        """The width of the whole side."""
        if not self.edges:
            return 0.0
        return self.label_width + 2 * _PADDING + _LANE * (max(self.lanes.values()) + 1)


@dataclass
class Layer:
    """One phase and its position."""

    name: str
    inside: Sequence[str]
    top: float = 0.0
    height: float = 0.0


def draw(table: Table) -> str:
    """Return a transition table as an SVG diagram."""
    layers, edges = _layers(table)
    left, right = _sides(edges)
    down = {edge.source: edge for edge in edges if edge.straight}
    width = _box_width(layers, down)
    height = _place(layers, down, (left, right))
    x = left.width + 2 * _PADDING
    elements = [element for layer in layers for element in _box(layer, x, width)]
    for edge in down.values():
        elements += _straight(edge, layers, x + width / 2)
    for edge in right.edges:
        elements += _along_side(edge, right, layers, x + width, 1)
    for edge in left.edges:
        elements += _along_side(edge, left, layers, x, -1)
    return svg.page(f"States of a {table.subject}", x + width + right.width + 2 * _PADDING, height + _PADDING, elements)


def sides_of(table: Table) -> tuple[Side, Side]:
    """Return the edges along the left side, and those along the right side."""
    return _sides(_layers(table)[1])


def _sides(edges: Sequence[Edge]) -> tuple[Side, Side]:
    forward = [edge for edge in edges if edge.target > edge.source and not edge.straight]
    return _side([edge for edge in edges if edge.target < edge.source]), _side(forward)


def _layers(table: Table) -> tuple[list[Layer], list[Edge]]:
    begins = any(row.source == NOTHING for row in table.rows)
    ends = any(row.target == NOTHING for row in table.rows)
    names = [*([BEGINNING] if begins else []), *table.phases, *([END] if ends else [])]
    number = {name: at for at, name in enumerate(names)}
    inside: dict[str, list[str]] = defaultdict(list)
    events: dict[tuple[int, int], list[str]] = defaultdict(list)
    for row in table.rows:
        if row.source == row.target:
            known = inside[row.source]
        else:
            source = number[BEGINNING if row.source == NOTHING else row.source]
            known = events[source, number[END if row.target == NOTHING else row.target]]
        if row.event not in known:
            known.append(row.event)
    edges = [Edge(source, target, tuple(each)) for (source, target), each in sorted(events.items())]
    return [Layer(name, inside[name]) for name in names], edges


# -- places --------------------------------------------------------------------------------------------------------
def _side(edges: Sequence[Edge]) -> Side:
    """Lay out one side: short edges get the inner lanes, and rows are ordered so that edges of one box do not cross."""
    side = Side(edges)
    taken: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for edge in sorted(edges, key=lambda one: (one.span, one.source, one.target)):
        low, high = min(edge.source, edge.target), max(edge.source, edge.target)
        lane = 0
        while any(low <= other_high and other_low <= high for other_low, other_high in taken[lane]):
            lane += 1
        taken[lane].append((low, high))
        side.lanes[edge] = lane
    rows: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        rows[edge.source].append(edge)
        rows[edge.target].append(edge)
    side.rows = {at: _ordered(at, each, side.lanes) for at, each in rows.items()}
    return side


def _ordered(at: int, edges: Sequence[Edge], lanes: Mapping[Edge, int]) -> Sequence[Edge]:
    """Order one layer's edges: those to layers above, from the inner lane outwards, then those below, inwards."""
    up = [edge for edge in edges if min(edge.source, edge.target) < at]
    down = [edge for edge in edges if edge not in up]
    return (*sorted(up, key=lanes.__getitem__), *sorted(down, key=lanes.__getitem__, reverse=True))


def _row_height(edge: Edge, at: int) -> float:
    return svg.LINE * len(edge.events) + 4 if edge.source == at else svg.LINE


def _box_width(layers: Sequence[Layer], down: Mapping[int, Edge]) -> float:
    texts = [text for layer in layers for text in (layer.name, *layer.inside)]
    labels = [2 * svg.width_of(event) + 20 for edge in down.values() for event in edge.events]
    return max(*(svg.width_of(text) for text in texts), *labels, 100.0) + 2 * _PADDING


def _place(layers: Sequence[Layer], down: Mapping[int, Edge], sides: Sequence[Side]) -> float:
    """Set the top and the height of each layer, and return the total height."""
    top = float(_PADDING)
    for at, layer in enumerate(layers):
        content = svg.LINE * (1 + len(layer.inside)) + _PADDING
        rows = (sum(_row_height(edge, at) for edge in side.rows.get(at, ())) for side in sides)
        layer.top, layer.height = top, max(content, *(height + _PADDING for height in rows))
        top += layer.height + (svg.LINE * len(down[at].events) + _GAP if at in down else _GAP)
    return layers[-1].top + layers[-1].height


def _row(edge: Edge, at: int, side: Side, layers: Sequence[Layer]) -> float:
    """Return the vertical position at which the edge leaves or reaches the box of layer `at`."""
    y = layers[at].top + _PADDING / 2
    for other in side.rows[at]:
        y += _row_height(other, at)
        if other is edge:
            break
    return y - 4


# -- elements ------------------------------------------------------------------------------------------------------
def _box(layer: Layer, x: float, width: float) -> list[str]:
    middle, absent = x + width / 2, layer.name in (BEGINNING, END)
    lines = [
        svg.box(x, layer.top, width, layer.height, kind="absent" if absent else "box"),
        svg.label(middle, layer.top + svg.LINE, layer.name, kind="quiet" if absent else "name", anchor="middle"),
    ]
    for number, event in enumerate(layer.inside, 2):
        lines.append(svg.label(middle, layer.top + svg.LINE * number, event, kind="quiet", anchor="middle"))
    return lines


def _straight(edge: Edge, layers: Sequence[Layer], middle: float) -> list[str]:
    source, target = layers[edge.source], layers[edge.target]
    top = source.top + source.height
    first = top + _GAP / 2 + 8
    labels = [svg.label(middle + 8, first + svg.LINE * at, event) for at, event in enumerate(edge.events)]
    return [svg.path([(middle, top), (middle, target.top)]), *labels]


def _along_side(edge: Edge, side: Side, layers: Sequence[Layer], border: float, direction: int) -> list[str]:
    """Draw an edge along a side; `direction` is 1 for the right side, -1 for the left side."""
    lane = border + direction * (side.label_width + 2 * _PADDING + _LANE * side.lanes[edge])
    start, end = _row(edge, edge.source, side, layers), _row(edge, edge.target, side, layers)
    labels = [
        svg.label(
            border + direction * _PADDING,
            start - 4 - svg.LINE * (len(edge.events) - 1 - number),
            event,
            anchor="start" if direction > 0 else "end",
        )
        for number, event in enumerate(edge.events)
    ]
    points = [(border, start), (lane, start), (lane, end), (border, end)]
    return [svg.path(points, kind="line" if direction > 0 else "back"), *labels]
