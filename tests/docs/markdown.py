"""Parses the repository's Markdown pages.

Input: the files. Output: links, anchors, code spans, tables and fenced blocks of each page. Next: the tests in this
folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("actors", "docs", "examples", "schemas", "scripts", "tests")


@dataclass(frozen=True)
class Block:
    """A fenced code block. `line` is the number of the first line inside it."""

    language: str
    text: str
    line: int


class Page:
    """A parsed Markdown file."""

    def __init__(self, path: Path, text: str | None = None) -> None:
        self.path = path
        self._tokens = MarkdownIt("commonmark").enable("table").parse(path.read_text() if text is None else text)

    def links(self) -> Iterator[str]:
        """Yield the targets of links and images."""
        for token in self._inline():
            for name in ("href", "src"):
                if name in token.attrs:
                    yield str(token.attrs[name])

    def spans(self) -> Iterator[str]:
        """Return the texts of the code spans."""
        return (token.content for token in self._inline() if token.type == "code_inline")

    def blocks(self) -> Iterator[Block]:
        """Yield the fenced code blocks."""
        for token in self._tokens:
            if token.type == "fence":
                assert token.map is not None
                yield Block(token.info.strip(), token.content, token.map[0] + 2)

    def tables(self) -> Iterator[list[list[Token]]]:
        """Yield the rows of each table, the header first; each cell is represented by its inline token."""
        rows: list[list[Token]] = []
        for token in self._tokens:
            if token.type == "table_open":
                rows = []
            elif token.type == "tr_open":
                rows.append([])
            elif token.type == "inline" and rows:
                rows[-1].append(token)
            elif token.type == "table_close":
                yield rows
                rows = []

    def anchors(self) -> set[str]:
        """Return the URL fragments that lead to the headings, as GitHub generates them."""
        found: set[str] = set()
        for opening, text in zip(self._tokens, self._tokens[1:], strict=False):
            if opening.type == "heading_open":
                slug = base = slug_of(text)
                number = 0
                while slug in found:
                    number += 1
                    slug = f"{base}-{number}"
                found.add(slug)
        return found

    def _inline(self) -> Iterator[Token]:
        for token in self._tokens:
            yield from token.children or ()


def spans_of(cell: Token) -> list[str]:
    """Return the texts of the code spans in a table cell."""
    return [child.content for child in cell.children or () if child.type == "code_inline"]


def slug_of(heading: Token) -> str:
    """Return the URL fragment of a heading: its text in lower case, without punctuation, with hyphens for spaces."""
    text = "".join(child.content for child in heading.children or ())
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def pages() -> list[Path]:
    """Return every Markdown file in the repository's root folder and below FOLDERS."""
    below = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))
    return sorted((*ROOT.glob("*.md"), *below))
