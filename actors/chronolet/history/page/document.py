"""Writes the page as one HTML document, which loads nothing.

Input: a title, the parts of the data. Output: pieces of text. Next: the caller writes them to a file.

A policy in the page allows only these scripts and this style, by their digests, and no connection at all. The data is
base64 in script elements that browsers do not run. The texts come after the scripts: the page is usable while a browser
still reads them.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files

from chronolet.history.page.columns import Part

STYLES = tuple(f"styles/{name}.css" for name in ("colours", "controls", "timeline", "panels", "screens"))
"""The styles in the order in which the page applies them."""
SCRIPTS = (
    *(f"data/{name}.js" for name in ("parts", "search_sorted", "levels", "times", "tables", "model", "texts")),
    *(
        f"present/{name}.js"
        for name in ("lanes", "time_window", "scroll_position", "search", "moments", "links", "state")
    ),
    *(
        f"views/{name}.js"
        for name in (
            "elements",
            "drawing",
            "gestures",
            "timeline",
            "moment_bar",
            "entry_list",
            "state_panel",
            "object_panel",
            "tabs",
            "main",
        )
    ),
)
"""The scripts in the order in which the page runs them. Each uses what the ones before define."""
_ASSETS = files("chronolet.history.page") / "assets"
_MARK = re.compile(r"\{\{([a-z]+)\}\}")


def asset(name: str) -> str:
    """Return the text of one of the page's own files."""
    return _ASSETS.joinpath(name).read_text(encoding="utf-8")


def document(title: str, parts: Iterable[Part], texts: Iterable[Part]) -> Iterator[str]:
    """Yield the page. `parts` are needed to begin with; `texts` are the rest of the data."""
    styles = [asset(name) for name in STYLES]
    scripts = [asset(name) for name in SCRIPTS]
    pieces: dict[str, Iterable[str]] = {
        "title": (html.escape(title),),
        "policy": (html.escape(_policy(scripts, styles)),),
        "style": (f"<style>{one}</style>\n" for one in styles),
        "data": map(_element, parts),
        "scripts": (f"<script>{one}</script>\n" for one in scripts),
        "texts": map(_element, texts),
    }
    # re.split alternates between the text around the marks and their names.
    for number, text in enumerate(_MARK.split(asset("page.html"))):
        yield from pieces[text] if number % 2 else (text,)


def _element(part: Part) -> str:
    return f'<script type="application/octet-stream" id="part-{part.name}">{part.data}</script>\n'


def _policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return a Content Security Policy that allows these texts and nothing else; the icon is empty data."""
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(map(_digest, scripts)),
        "style-src": " ".join(map(_digest, styles)),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
