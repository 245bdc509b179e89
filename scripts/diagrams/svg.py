"""Builds SVG elements in one fixed style. Input: numbers and text. Output: lines of SVG, the same on every machine.

All text is in one monospaced font, so its width follows from its length. Next: `states` and `sequences`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

CHARACTER = 7.3
"""The width of a character in pixels, for the font size below."""
LINE = 16
"""The height of a line of text in pixels."""
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
 width="{width}" height="{height}" role="img">
<title>{title}</title>
<style>
text {{ font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1f2430; }}
.name {{ font-weight: bold; }}
.quiet {{ fill: #5b6275; }}
.over {{ paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }}
.box {{ fill: #eef3fb; stroke: #3d6299; }}
.absent {{ fill: #ffffff; stroke: #8a90a0; stroke-dasharray: 4 3; }}
.note {{ fill: #fff6d8; stroke: #b39a45; }}
.line {{ fill: none; stroke: #3b4254; }}
.back {{ fill: none; stroke: #a3552b; }}
.dashed {{ stroke-dasharray: 5 4; }}
</style>
<defs>
<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0,0 L8,4 L0,8 z" fill="#3b4254"/></marker>
<marker id="tip-back" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0,0 L8,4 L0,8 z" fill="#a3552b"/></marker>
</defs>
<rect width="{width}" height="{height}" fill="#ffffff"/>"""


def page(title: str, width: float, height: float, elements: Iterable[str]) -> str:
    """Return a complete SVG file."""
    head = _HEAD.format(title=escape(title), width=math.ceil(width), height=math.ceil(height))
    return "\n".join((head, *elements, "</svg>", ""))


def width_of(text: str) -> float:
    """Return the width of a text in pixels."""
    return len(text) * CHARACTER


def label(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text whose baseline is at `y`."""
    styled = f' class="{kind}"' if kind else ""
    return f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"{styled}>{escape(text)}</text>'


def box(x: float, y: float, width: float, height: float, *, kind: str = "box") -> str:
    """Return a rectangle with rounded corners."""
    return f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="6"/>'


def path(points: Iterable[tuple[float, float]], *, kind: str = "line", tip: bool = True) -> str:
    """Return a line through the points, with an arrowhead at its end if `tip` is set."""
    route = " L".join(f"{_n(x)},{_n(y)}" for x, y in points)
    marker = ' marker-end="url(#tip-back)"' if kind == "back" else ' marker-end="url(#tip)"'
    return f'<path class="{kind}" d="M{route}"{marker if tip else ""}/>'


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
