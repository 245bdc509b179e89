r"""Finds parts of a text as they read without escapes: programs write `%2f`, `\\"` and `\\u0041`, fully or partly.

Input: a text, a function that finds parts. Output: where these parts are in the text, however their characters were
written. Pure. Next: `searching`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import accumulate

_ESCAPE = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)|\\(?:u(?P<unicode>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2})|(?P<one>[^ux]))"
)
_ONE = {"n": "\n", "t": "\t", "r": "\r"}

Spans = Iterator[tuple[int, int, str]]
"""Ranges of a text in their order, and what is there."""


def in_escaped(text: str, find: Callable[[str], Spans]) -> Spans:
    """Yield what `find` finds in a text without its escapes, with its place in the text; nothing if it has none."""
    if "%" not in text and "\\" not in text:
        return
    plain, begins = _unescaped(text)
    if len(plain) < len(text):
        for begin, end, what in find(plain):
            yield begins[begin], begins[end], what


def _unescaped(text: str) -> tuple[str, list[int]]:
    """Return the text without escapes, and where each of its characters begins in the text; at last, the text's end."""
    plain: list[str] = []
    begins: list[int] = []
    at = 0
    for found in _ESCAPE.finditer(text):
        plain.append(text[at : found.start()])
        begins += range(at, found.start())
        at = found.end()
        if found["percent"] is None:
            plain.append(_character(found))
            begins.append(found.start())
            continue
        decoded = bytes.fromhex(found["percent"].replace("%", "")).decode(errors="surrogateescape")
        plain.append(decoded)
        lengths = (3 * len(one.encode(errors="surrogateescape")) for one in decoded)
        begins += list(accumulate(lengths, initial=found.start()))[:-1]
    plain.append(text[at:])
    return "".join(plain), [*begins, *range(at, len(text) + 1)]


def _character(found: re.Match[str]) -> str:
    digits = found["unicode"] or found["byte"]
    return chr(int(digits, 16)) if digits else _ONE.get(found["one"], found["one"])
