"""Build the documents of a manifest file as plain data from the YAML parser's events.

Input: text. Output: maps, lists and scalars, with the problems that are visible only in the text: duplicate keys,
nesting that is too deep, aliases that expand too far, tags. Recursion is limited to `MAX_DEPTH`, and the result to
`MAX_NODES` and `MAX_CHARACTERS` with aliases expanded. Next: `reader`.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from chronolet.adapters.manifest_files.scalars import TAGS, TEXT_TAGS, Scalar, key_text, resolve, whole
from chronolet.rules.validation.problems import Problem

MAX_DOCUMENTS = 2000
MAX_DEPTH = 60
MAX_NODES = 250_000
MAX_CHARACTERS = 6 * 1024 * 1024

_MERGE = "<<"
_SHOWN = 60
_BLANKS = re.compile(r"[ \t\r\n]*")
_JSON_BEGINS = re.compile(r"\s*\{\s*[\"}]")
_JSON_NODE = re.compile(r"\"(?:[^\"\\]++|\\.)*+\"?|[\[{]|[^\s\[\]{},:\"]++", re.DOTALL)
"""A key, a scalar, or the start of a list or map. Possessive, so that it never backtracks into strings."""


class Document(NamedTuple):
    """One YAML or JSON document of a file. `value` is None if it is empty."""

    value: Any
    problems: tuple[Problem, ...]


class NotReadableError(Exception):
    """Parsing cannot continue and no further document can be read. The message says where and why."""


def _too_many() -> NotReadableError:
    return NotReadableError(f"more than {MAX_DOCUMENTS} documents")


class _Anchored(NamedTuple):
    value: Any
    nodes: int
    characters: int


def documents(text: str) -> Iterator[Document]:
    """Yield the documents in order. Raises NotReadableError if the text after the last yielded document cannot be
    parsed, for instance because it is not YAML or too large.
    """
    if text.lstrip().startswith("{"):
        found = _json_documents(text)
        if found is not None:
            yield from found
            return
    try:
        builder = _Builder(text)
        for _ in range(MAX_DOCUMENTS):
            if not builder.more():
                return
            yield builder.document()
        raise _too_many()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise NotReadableError(f"{where}not YAML: {error.problem or error.context}") from error
    except yaml.reader.ReaderError as error:
        raise NotReadableError(f"not YAML: {error.reason} ({error.character!r} at {error.position})") from error


def _json_documents(text: str) -> list[Document] | None:
    """Parse a sequence of JSON values; return None if the text is not JSON (it may still be YAML that begins with a
    brace).

    The JSON parser builds a value in one go, so nodes are counted before it starts.
    """
    if _JSON_BEGINS.match(text) and any(True for _ in itertools.islice(_JSON_NODE.finditer(text), MAX_NODES, None)):
        raise NotReadableError(f"more than {MAX_NODES} values")
    problems: list[Problem] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            problems.append(Problem("", f"duplicate key {_most_repeated(pairs)!r}"))
        return found

    decoder = json.JSONDecoder(object_pairs_hook=unique)
    found: list[Document] = []
    position = 0
    try:
        while (position := _after_blanks(text, position)) < len(text):
            if len(found) == MAX_DOCUMENTS:
                raise _too_many()
            value, position = decoder.raw_decode(text, position)
            found.append(Document(_checked(value, "", problems), tuple(problems)))
            problems.clear()
    except (ValueError, RecursionError):
        return None
    return found


def _after_blanks(text: str, position: int) -> int:
    found = _BLANKS.match(text, position)
    return found.end() if found else position


def _most_repeated(pairs: list[tuple[str, Any]]) -> str:
    ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
    return key[:_SHOWN]


def _checked(value: Any, path: str, problems: list[Problem], depth: int = 0) -> Any:
    """Return the JSON value with its scalars sanitized; append problems to `problems`."""
    if depth > MAX_DEPTH:
        problems.append(Problem(path, f"nested deeper than {MAX_DEPTH} levels"))
        return None
    if isinstance(value, dict):
        return {
            _checked(key, path, problems, depth): _checked(held, _child(path, key), problems, depth + 1)
            for key, held in value.items()
        }
    if isinstance(value, list):
        return [_checked(held, f"{path}[{index}]", problems, depth + 1) for index, held in enumerate(value)]
    return _scalar(value, path, problems)


def _scalar(value: Scalar, path: str, problems: list[Problem]) -> Scalar:
    """Return the scalar, or an empty or shortened one if Kubernetes or Redis could not represent it."""
    if isinstance(value, float):
        if math.isfinite(value):
            return whole(value)
        problems.append(Problem(path, f"{value} is not a finite number"))
        return None
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            problems.append(Problem(path, "contains an unpaired surrogate, expected valid Unicode"))
            return ""
    if isinstance(value, str) and "\0" in value:
        problems.append(Problem(path, "contains a NUL character"))
        return value.replace("\0", "")
    return value


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


class _Builder:
    """Builds documents from the parser's events; keeps track of the size of the result and of the current document's
    anchors.
    """

    def __init__(self, text: str) -> None:
        self._events = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._event = next(self._events)  # the start of the stream
        self._nodes = 0
        self._characters = 0
        self._advance()
        self._start()

    def more(self) -> bool:
        """Whether another document follows."""
        return isinstance(self._event, yaml.DocumentStartEvent)

    def document(self) -> Document:
        """Return the next document."""
        self._start()
        self._advance()
        value = self._node("", 0)
        self._advance()
        return Document(value, tuple(self._problems))

    def _start(self) -> None:
        self._anchors: dict[str, _Anchored] = {}
        self._problems: list[Problem] = []

    def _advance(self) -> None:
        self._event = next(self._events)

    def _fail(self, message: str) -> NotReadableError:
        return NotReadableError(f"line {self._line()}: {message}")

    def _line(self) -> int:
        mark = self._event.start_mark
        return mark.line + 1 if mark else 0

    def _count(self, nodes: int, characters: int) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > MAX_NODES:
            raise self._fail(f"more than {MAX_NODES} values with aliases expanded")
        if self._characters > MAX_CHARACTERS:
            raise self._fail(f"more than {MAX_CHARACTERS} characters with aliases expanded")

    def _node(self, path: str, depth: int) -> Any:
        """Return the value that starts with the current event, and advance to the event after the value."""
        if depth > MAX_DEPTH:
            raise self._fail(f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(self._event, yaml.AliasEvent):
            return self._alias(str(self._event.anchor))
        nodes, characters, anchor = self._nodes, self._characters, getattr(self._event, "anchor", None)
        value = self._new(path, depth)
        if anchor is not None:
            self._anchors[anchor] = _Anchored(value, self._nodes - nodes, self._characters - characters)
        return value

    def _new(self, path: str, depth: int) -> Any:
        """Return the value that starts with the current event, which is not an alias, and advance to the event after
        the value. `_node` checks the depth and records anchors.
        """
        event = self._event
        self._count(1, 0)
        self._advance()
        if isinstance(event, yaml.ScalarEvent):
            return self._read_scalar(event, path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        return self._mapping(path, depth)

    def _alias(self, name: str) -> Any:
        anchored = self._anchors.get(name)
        if anchored is None:
            raise self._fail(f"alias *{name} has no anchor before it")
        self._count(anchored.nodes, anchored.characters)
        self._advance()
        return anchored.value

    def _read_scalar(self, event: yaml.ScalarEvent, path: str) -> Scalar:
        text = event.value
        self._count(0, len(text))
        if event.tag is None:
            value = resolve(text) if event.implicit[0] else text
        elif event.tag in TEXT_TAGS:
            value = text
        elif event.tag in TAGS:
            value = resolve(text)
        else:
            self._problems.append(Problem(path, f"tag {event.tag[:_SHOWN]} is not supported"))
            return None
        return _scalar(value, path, self._problems)

    def _sequence(self, path: str, depth: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(self._event, yaml.SequenceEndEvent):
            items.append(self._node(f"{path}[{len(items)}]", depth + 1))
        self._advance()
        return items

    def _mapping(self, path: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(self._event, yaml.MappingEndEvent):
            if self._is_merge():
                self._advance()
                self._merge(merged, self._node(_child(path, _MERGE), depth + 1), path)
                continue
            key = self._key(path, depth)
            value = self._node(_child(path, key or "?"), depth + 1)
            if key is None:
                continue
            if key in found:
                self._problems.append(Problem(_child(path, key), "duplicate key"))
            found[key] = value
        self._advance()
        return {**merged, **found}

    def _is_merge(self) -> bool:
        event = self._event
        return isinstance(event, yaml.ScalarEvent) and event.value == _MERGE and bool(event.implicit[0])

    def _merge(self, merged: dict[str, Any], value: Any, path: str) -> None:
        """Merge the maps that `<<` refers to; if several have the same key, the first one wins."""
        for source in value if isinstance(value, list) else [value]:
            if isinstance(source, dict):
                merged.update({key: held for key, held in source.items() if key not in merged})
            else:
                self._problems.append(Problem(_child(path, _MERGE), "merged value is not a map"))

    def _key(self, path: str, depth: int) -> str | None:
        line = self._line()
        key = self._node(path, depth + 1)
        text = None if isinstance(key, dict | list) else key_text(key)
        if text is None:
            self._problems.append(Problem(path, f"the key in line {line} is not text"))
        return text
