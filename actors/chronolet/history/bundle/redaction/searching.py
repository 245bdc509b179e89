"""Searches texts for values that are known to be secret, also in the forms in which programs print them.

Input: the values that the rules found, the contents of Secrets, the names in the log. Output: a function that replaces
them in a text. Its time depends on the text's length, not on the number of values. Pure. Next: `redaction`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from chronolet.history.bundle.redaction import rules
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
    mark: str
    strong: bool
    """Whether it is also searched for within words, and in texts that are not for people."""


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
    """Return a function that replaces these values. `fixed`: words that have a meaning in events, and stay."""
    needles: dict[str, list[_Needle]] = {}
    for one in _needles(values, fixed):
        needles.setdefault(one.text[:_BEGIN], []).append(one)
    for some in needles.values():
        some.sort(key=lambda one: -len(one.text))
    ends = _ends(values)

    def replaced(text: str, free: bool) -> str:
        if text in fixed:
            return text
        pieces: list[str] = []
        at = index = 0
        if len(text) >= _CUT and (cut := _longest(ends.get(text[:_BEGIN], ()), text)) is not None:
            pieces, at, index = [cut.mark], len(cut.text), len(cut.text)
        while index + _BEGIN <= len(text):
            candidates = needles.get(text[index : index + _BEGIN])
            found = _first(candidates, text, index, free=free) if candidates else None
            if found is None and candidates and len(text) >= _CUT and _is_begun(candidates, text, index):
                return "".join([*pieces, text[at:index], candidates[0].mark])
            if found is None:
                index += 1
                continue
            pieces += [text[at:index], found.mark]
            at = index = index + len(found.text)
        return "".join([*pieces, text[at:]]) if pieces else text

    return replaced


def _first(candidates: Iterable[_Needle], text: str, index: int, *, free: bool) -> _Needle | None:
    for one in candidates:
        if text.startswith(one.text, index) and (one.strong or (free and _is_bounded(text, index, len(one.text)))):
            return one
    return None


def _longest(ends: Iterable[_Needle], text: str) -> _Needle | None:
    """Return the longest of these with which the text begins."""
    return max((one for one in ends if text.startswith(one.text)), key=lambda one: len(one.text), default=None)


def _is_begun(candidates: Iterable[_Needle], text: str, index: int) -> bool:
    """Return whether the text ends within one of these, which begins at `index`."""
    rest = len(text) - index
    return rest >= _LEAST and any(one.strong and one.text.startswith(text[index:]) for one in candidates)


def _ends(values: Values) -> dict[str, list[_Needle]]:
    """Return the ends of the secrets that are surely some: a text that was cut may begin with one."""
    ends: dict[str, list[_Needle]] = {}
    for value in values:
        if value in values.sure and len(value) <= _CUT:
            mark = values.mark(value, sure=True)
            for begin in range(1, len(value) - _LEAST + 1):
                end = value[begin:]
                ends.setdefault(end[:_BEGIN], []).append(_Needle(end, mark, strong=True))
    return ends


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
            if text not in seen and text not in names and _is_searched(text, sure=sure):
                seen.add(text)
                yield _Needle(text, mark, _looks_random(text) or (sure and len(text) >= _LEAST))


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
        for after in ("", "\n"):
            yield from _base64(text + after, sure=sure)
    yield from _lines(value)
    yield from (value[span.begin : span.end] for span in rules.in_text(value))
    if re.search(r"\s", value):
        yield from (word for word in _TOKEN.findall(value) if _looks_random(word))


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
