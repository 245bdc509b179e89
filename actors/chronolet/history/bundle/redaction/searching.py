"""Searches texts for values that are known to be secret, also in the forms in which programs print them.

Input: the values that the rules found, the contents of Secrets, the names in the log. Output: a function that finds
them in a text. Its time depends on the text's length, not on the number of values. Pure. Next: `redaction`.
"""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from chronolet.history.bundle.redaction import escapes, rules, texts
from chronolet.history.bundle.redaction.redactor import Search, Values

_BEGIN = 4
"""The number of characters by which candidates are found; no shorter value is searched for."""
_LEAST = 6
"""The least length of a value whose name does not say that it is a secret."""
_LEAST_LINE = 8
_CUT = 500
"""Texts of this length may have been cut by the agent or the engine, within a secret."""
_PLAIN_WORD = re.compile(r"[A-Z]?[a-z]{1,8}")
"""A word of any sentence. If only its place says that it may be a secret, it is not searched for."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_WORD_LENGTH = 3
"""The least average length of the words in a composed one, such as `imagePullPolicy`; in a random text it is less."""
_BOUND = re.compile(r"\w")
_TOKEN = re.compile(r"[^\s\"'`,;=:@/&?()<>{}\[\]|$]{8,}")


class _Needle(NamedTuple):
    text: str
    """What is searched for; in small letters if `folds`."""
    mark: str
    strong: bool
    """Whether it is also searched for within words, and in texts that are not for people."""
    folds: bool
    """Whether it is found in capital and small letters: not a word of a language, which would be found too often."""


def add_secret(values: Values, content: bytes) -> None:
    """Add the content of a Secret: as a whole, its lines, and the texts within if it is JSON."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        values.mark(base64.b64encode(content).decode(), sure=True)
        return
    leaves = tuple(_in_json(text))
    for one in (text.strip(), *_lines(text), *leaves, *_passwords(leaves)):
        if len(one) >= _BEGIN and not rules.is_harmless(one):
            values.mark(one, sure=True)


def search(values: Values, fixed: frozenset[str] = frozenset()) -> Search:
    """Return a function that finds these values. `fixed`: words that have a meaning in events, and stay."""
    finder = _Finder(values, fixed)

    def found(text: str, free: bool) -> Iterator[tuple[int, int, str]]:
        if text not in fixed:
            yield from finder.spans(text, free=free)
            yield from escapes.in_escaped(text, lambda plain: finder.spans(plain, free=free))

    return found


class _Finder:
    """Finds values in a text."""

    def __init__(self, values: Values, fixed: frozenset[str]) -> None:
        self._needles: dict[str, list[_Needle]] = {}
        for one in _needles(values, fixed):
            self._needles.setdefault(_small(one.text[:_BEGIN]), []).append(one)
        for some in self._needles.values():
            some.sort(key=lambda one: -len(one.text))
        self._sure = _Sure(values)

    def spans(self, text: str, *, free: bool) -> Iterator[tuple[int, int, str]]:
        """Yield where values begin and end, and their marks."""
        small = _small(text)
        index = 0
        if len(text) >= _CUT and (cut := self._sure.end_at_the_beginning_of(text)) is not None:
            index = cut[0]
            yield 0, *cut
        while index + _BEGIN <= len(text):
            candidates = self._needles.get(small[index : index + _BEGIN])
            if not candidates:
                index += 1
                continue
            found = _first(candidates, text, small, index, free=free)
            if found is None and len(text) >= _CUT and (begun := _begun(candidates, text, small, index)) is not None:
                yield index, len(text), begun.mark
                return
            if found is not None:
                yield index, index + len(found.text), found.mark
            index += 1 if found is None else len(found.text)


class _Sure:
    """The values that are surely secrets, one after the other: looking for the beginning of a text in all of them takes
    no memory for each of their ends.
    """

    def __init__(self, values: Values) -> None:
        self._values = [value for value in values if value in values.sure and _LEAST < len(value) <= _CUT]
        self._marks = [values.mark(value, sure=True) for value in self._values]
        self._begins = list(accumulate((len(value) + 1 for value in self._values), initial=0))
        self._all = _BETWEEN.join([*self._values, ""])

    def end_at_the_beginning_of(self, text: str) -> tuple[int, str] | None:
        """Return the length and the mark of the longest end of a value with which a text begins: it may be cut."""
        first, longest = text[:_LEAST], None
        at = -1 if _BETWEEN in first else self._all.find(first)
        while at >= 0:
            number = bisect_right(self._begins, at) - 1
            end = self._values[number][at - self._begins[number] :]
            if len(end) < len(self._values[number]) and text.startswith(end):
                longest = max(longest or (0, ""), (len(end), self._marks[number]))
            at = self._all.find(first, at + 1)
        return longest


_BETWEEN = "\0"


def _small(text: str) -> str:
    """Return the text with small letters of ASCII, so that its length stays."""
    return text.lower() if text.isascii() else text.translate(_SMALL)


_SMALL = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _first(candidates: Iterable[_Needle], text: str, small: str, index: int, *, free: bool) -> _Needle | None:
    for one in candidates:
        found = (small if one.folds else text).startswith(one.text, index)
        if found and (one.strong or (free and _is_bounded(text, index, len(one.text)))):
            return one
    return None


def _begun(candidates: Iterable[_Needle], text: str, small: str, index: int) -> _Needle | None:
    """Return the value within which the text ends, and which begins at `index`."""
    if len(text) - index < _LEAST:
        return None
    begun = (one for one in candidates if one.strong and one.text.startswith((small if one.folds else text)[index:]))
    return next(begun, None)


def _is_bounded(text: str, index: int, length: int) -> bool:
    before, after = text[index - 1 : index], text[index + length : index + length + 1]
    return _BOUND.match(before) is None and _BOUND.match(after) is None


def _needles(values: Values, fixed: frozenset[str]) -> Iterator[_Needle]:
    names = fixed | {part for name in values.names for part in (name, *re.split(r"[/:@]", name))}
    seen: set[str] = set()
    for value in values:
        sure = value in values.sure
        mark = values.mark(value, sure=sure)
        for text in _forms(value, sure=sure):
            if text not in seen and text not in (fixed if sure else names) and _is_searched(text, sure=sure):
                seen.add(text)
                folds = sure and _WORD.fullmatch(text) is None
                strong = _looks_random(text) or (sure and len(text) >= _LEAST)
                yield _Needle(_small(text) if folds else text, mark, strong, folds)


_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def _is_searched(text: str, *, sure: bool) -> bool:
    if len(text) < (_BEGIN if sure else _LEAST) or rules.MARK.search(text):
        return False
    return sure or not (rules.is_harmless(text) or _PLAIN_WORD.fullmatch(text))


def _looks_random(text: str) -> bool:
    """Return whether a word is none of a language, nor composed of such words."""
    if len(text) < _LEAST_LINE or " " in text:
        return False
    words = _WORDS.findall(text)
    return bool(words) and (any(map(str.isdigit, text)) or sum(map(len, words)) < _WORD_LENGTH * len(words))


def _forms(value: str, *, sure: bool) -> Iterator[str]:
    """Yield a value, its lines and words, and its encodings."""
    yield value
    for text in (value, value.strip()):
        yield from (
            text,
            json.dumps(text)[1:-1],
            json.dumps(text, ensure_ascii=False)[1:-1],
            quote(text),
            quote(text, ""),
        )
        yield repr(text)[1:-1]
        if sure and len(text) >= _LEAST:
            yield text.encode("utf-8", "surrogatepass").hex()
        for after in ("", "\n"):
            yield from _base64(text + after, sure=sure)
    yield from _lines(value)
    yield from (value[span.begin : span.end] for span in texts.in_text(value))
    if "=" in value:
        yield from (value.strip("="), value.partition("=")[0])
    if sure:
        yield from _parts(value)
    if re.search(r"\s", value):
        yield from (word for word in _TOKEN.findall(value) if _looks_random(word))


def _parts(value: str) -> Iterator[str]:
    """Yield a value without what may follow it in a text, and the password after a user's name."""
    yield value.rstrip(",;&)]}.\"'")
    yield re.split(r"[,;&\"']", value, maxsplit=1)[0]
    user, colon, password = value.partition(":")
    if colon and re.fullmatch(r"[A-Za-z0-9_.%+-]{0,64}", user):
        yield from (password, unquote(password))
    yield unquote(value)


def _base64(text: str, *, sure: bool) -> Iterator[str]:
    """Yield a value's forms in base64, at each of the three places where it may begin in a longer text."""
    if len(text) < (_LEAST if sure else _LEAST_LINE):
        return
    for skipped in range(3):
        # The first and last digits also depend on what is before and after the value.
        digits = base64.b64encode(b"\0" * skipped + text.encode("utf-8", "surrogatepass")).decode().rstrip("=")
        inner = digits[(0, 2, 3)[skipped] : -1]
        yield from (inner, inner.replace("+", "-").replace("/", "_"))


def _lines(text: str) -> Iterator[str]:
    lines = text.splitlines()
    if len(lines) > 1:
        yield from (line.strip() for line in lines if len(line.strip()) >= _LEAST_LINE)


def _in_json(text: str) -> Iterator[str]:
    if not text.lstrip().startswith(("{", "[")):
        return
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return
    yield from _leaves(found)


def _passwords(texts: Iterable[str]) -> Iterator[str]:
    """Yield the passwords in texts such as the `auth` of a registry: `user:password` in base64."""
    for text in texts:
        try:
            yield base64.b64decode(text, validate=True).decode().partition(":")[2]
        except ValueError:
            continue


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for held in value.values():
            yield from _leaves(held)
    elif isinstance(value, list):
        for held in value:
            yield from _leaves(held)
