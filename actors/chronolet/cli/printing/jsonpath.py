"""Parses and applies JSONPath templates in kubectl's dialect.

Input: a template such as `{.items[*].metadata.name}` or `{range .items[*]}{.status.podIP} {end}`, then plain data.
Output: text. A missing key yields nothing; an index out of range is an error. Filters, unions and `..` are rejected
with an error that names them. Next: `get`, `wait`. Source: client-go's util/jsonpath.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

Step = Callable[[Any], list[Any]]


class JsonPathError(ValueError):
    """Raised if the template is invalid or cannot be applied to the data."""


class Text(NamedTuple):
    """Literal text."""

    text: str


class Path(NamedTuple):
    """A path such as `.a[0].b`: its results are printed, separated by spaces."""

    from_root: bool
    steps: tuple[Step, ...]


class Range(NamedTuple):
    """A `{range PATH}...{end}` block: its body is printed once for each result of its path."""

    path: Path
    body: tuple[Text | Path | Range, ...]


Part = Text | Path | Range

_QUOTED = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
_BRACES = re.compile(r"\{((?:" + _QUOTED + r"|[^{}\"'])*)\}", re.DOTALL)
_WORD = re.compile(
    rf"\s*(?:(?P<quoted>{_QUOTED})|(?P<range>range)\s+(?=[$@.\[])|(?P<end>end)(?=\s|$)|(?P<path>[$@.\[]))", re.DOTALL
)
_STEP = re.compile(
    r"\.(?P<name>(?:\\.|[^\s.\[\]{}\\'\"$@?()*|,])+)"
    r"|\[(?P<index>-?\d+)\]"
    r"|\['(?P<key>(?:\\.|[^'\\])*)'\]"
    r"|\[(?P<slice>-?\d*:-?\d*(?::[1-9]\d*)?)\]"
    r"|(?P<all>\.\*|\[\*\])"
)
_REFUSED = (
    (re.compile(r"\.?\[\?"), "a filter [?(...)]"),
    (re.compile(r"\.\."), "recursive descent (..)"),
    (re.compile(r"\[[^\]]*,"), "a union [a,b]"),
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class Template(NamedTuple):
    """A parsed template."""

    parts: tuple[Part, ...]

    def text(self, data: Any) -> str:
        """Return the template's output for this data."""
        return "".join(_printed(self.parts, data, data))

    def found(self, data: Any) -> list[Any]:
        """Return what the template's paths select in this data; each `range` is ignored, with its content."""
        return [value for part in self.parts if isinstance(part, Path) for value in _walked(part, data, data)]


def parsed(template: str) -> Template:
    """Parse a template. Raises a JsonPathError that shows the invalid part."""
    open_: list[tuple[Path | None, list[Part]]] = [(None, [])]
    for word in _words(template):
        if isinstance(word, _Open):
            open_.append((word.path, []))
        elif isinstance(word, Text | Path):
            open_[-1][1].append(word)
        else:
            path, body = open_.pop()
            if path is None:
                raise JsonPathError("found {end} without a {range ...} before it")
            open_[-1][1].append(Range(path, tuple(body)))
    if len(open_) > 1:
        raise JsonPathError("found {range ...} without its {end}")
    return Template(tuple(open_[0][1]))


def relaxed(template: str) -> Template:
    """Parse a template. If it is a single path, its braces and its leading dot may be omitted."""
    if "{" in template:
        return parsed(template)
    return parsed("{" + (template if template.startswith((".", "[", "$", "@")) else f".{template}") + "}")


class _Open(NamedTuple):
    """The start of a range."""

    path: Path


class _Close(NamedTuple):
    """The end of a range."""


_Word = Text | Path | _Open | _Close


def _words(template: str) -> Iterator[_Word]:
    at = 0
    while at < len(template):
        begin = template.find("{", at)
        if begin != at:
            yield Text(template[at : begin if begin >= 0 else len(template)])
        if begin < 0:
            return
        braces = _BRACES.match(template, begin)
        if braces is None:
            raise JsonPathError(f"found {template[begin:]!r}, expected a complete expression in braces")
        yield from _inner(braces[1].strip())
        at = braces.end()


def _inner(inside: str) -> Iterator[_Word]:
    """Parse the content of a pair of braces."""
    at = 0
    while at < len(inside):
        word = _WORD.match(inside, at)
        if word is None:
            raise JsonPathError(
                f"found {inside[at:]!r}, expected a path such as .metadata.name, quoted text, range or end"
            )
        if word["quoted"]:
            yield Text(_unescaped(word["quoted"][1:-1]))
            at = word.end()
        elif word["end"]:
            yield _Close()
            at = word.end()
        else:
            path, at = _path(inside, word.end() if word["range"] else word.start("path"))
            yield _Open(path) if word["range"] else path


def _path(inside: str, at: int) -> tuple[Path, int]:
    """Parse the path that starts at this offset. Return it and the offset at which it ends."""
    root = inside[at : at + 1] == "$"
    at += inside[at : at + 1] in ("$", "@") and at < len(inside)
    steps: list[Step] = []
    # `{.}` is the current object itself.
    if inside[at : at + 1] == "." and not inside[at + 1 : at + 2].strip():
        return Path(root, ()), at + 1
    while at < len(inside) and not inside[at].isspace():
        for refused, name in _REFUSED:
            if refused.match(inside, at):
                raise JsonPathError(f"found {inside!r}: {name} is not supported")
        step = _STEP.match(inside, at)
        if step is None:
            raise JsonPathError(f"found {inside[at:]!r} in {inside!r}, expected .name, .*, [0], [0:2], [*] or ['name']")
        steps.append(_step(step))
        at = step.end()
    return Path(root, tuple(steps)), at


def _step(found: re.Match[str]) -> Step:
    if found["index"]:
        return lambda value: _at(value, int(found["index"]))
    if found["slice"]:
        return lambda value: _cut(value, found["slice"])
    if found["all"]:
        return _everything
    name = re.sub(r"\\(.)", r"\1", found["name"] or found["key"] or "")
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _everything(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _at(value: Any, index: int) -> list[Any]:
    if not isinstance(value, list):
        raise JsonPathError(f"[{index}]: the value is not an array")
    if not -len(value) <= index < len(value):
        raise JsonPathError(f"array index out of bounds: index {index}, length {len(value)}")
    return [value[index]]


def _cut(value: Any, bounds: str) -> list[Any]:
    if not isinstance(value, list):
        raise JsonPathError(f"[{bounds}]: the value is not an array")
    return value[slice(*(int(bound) if bound else None for bound in bounds.split(":")))]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text, flags=re.DOTALL)


def _walked(path: Path, here: Any, root: Any) -> list[Any]:
    values = [root if path.from_root else here]
    for step in path.steps:
        values = [below for value in values for below in step(value)]
    return values


def _printed(parts: Sequence[Part], here: Any, root: Any) -> Iterator[str]:
    for part in parts:
        match part:
            case Text(text):
                yield text
            case Path():
                yield " ".join(map(shown, _walked(part, here, root)))
            case Range(path, body):
                for item in _walked(path, here, root):
                    yield from _printed(body, item, root)


def shown(value: Any) -> str:
    """Return a string unchanged, and any other value as JSON on one line."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
