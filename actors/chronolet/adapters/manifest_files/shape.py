"""Check plain data against the types of a Pod: report every value of a wrong type with its path, and every unknown
field.

Input: the plain value of a document. Output: the problems, and a value without its wrong parts, which msgspec.convert
accepts. A single pass finds all problems, whereas converting would stop at the first one. Next: `objects`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from chronolet.rules.validation.problems import Problem
from chronolet_schemas.podspec import LARGEST_INTEGER, Part

_ABSENT = object()

_Rule = Callable[["_Fitter", Any, Any, str], Any]

_SHOWN = 60
_HINTS = 20


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `fit`: a value that can be converted to the type, the problems found, and the unknown fields, some
    with a spelling hint.
    """

    value: Any
    problems: tuple[Problem, ...]
    unknown: tuple[Problem, ...]


def fit(value: Any, part: type[Part], path: str = "") -> Fitted:
    """Make `value` fit the type `part`. A wrong field is dropped; a wrong item in a list of objects becomes an empty
    object.
    """
    fitter = _Fitter()
    fitted = fitter.fit(value, _info(part), path)
    return Fitted(
        value={} if fitted is _ABSENT else fitted,
        problems=tuple(fitter.problems),
        unknown=tuple(fitter.unknown),
    )


@cache
def _info(part: type[Part]) -> inspect.Type:
    return inspect.type_info(part)


@cache
def _fields(part: type[Part]) -> dict[str, inspect.Type]:
    info = _info(part)
    return {field.encode_name: field.type for field in info.fields} if isinstance(info, inspect.StructType) else {}


class _Fitter:
    """One pass over one object."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.unknown: list[Problem] = []

    def fit(self, value: Any, info: inspect.Type, path: str) -> Any:
        """Return the value in a form that fits `info`, or `_ABSENT` after recording a problem."""
        rule: _Rule = _FITS.get(type(info), _Fitter.loose)
        return rule(self, value, info, path)

    def _wrong(self, value: Any, expected: str, path: str) -> Any:
        self.problems.append(Problem(path, f"{described(value)}, expected {expected}"))
        return _ABSENT

    def union(self, value: Any, info: inspect.UnionType, path: str) -> Any:
        """Fit a value to an optional type, or to a type that accepts an integer or a string."""
        kinds = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
        if len(kinds) == 1:
            return self.fit(value, kinds[0], path)
        if isinstance(value, str):
            return value
        number = next(kind for kind in kinds if isinstance(kind, inspect.IntType))
        if isinstance(value, int) and not isinstance(value, bool):
            return self.integer(value, number, path)
        return self._wrong(value, "a whole number or text", path)

    def struct(self, value: Any, info: inspect.StructType, path: str) -> Any:
        if not isinstance(value, dict):
            return self._wrong(value, "a map", path)
        fields = _fields(info.cls)
        fitted: dict[str, Any] = {}
        for key, held in value.items():
            here = f"{path}.{key}" if path else key
            if key not in fields:
                self._unknown(key, fields, here)
            elif held is not None:
                fitted[key] = self.fit(held, fields[key], here)
        return {key: held for key, held in fitted.items() if held is not _ABSENT}

    def _unknown(self, key: str, fields: dict[str, inspect.Type], path: str) -> None:
        # Finding similar names is slow, so only the first unknown fields get hints.
        near = difflib.get_close_matches(key[:_SHOWN], fields, n=1) if len(self.unknown) < _HINTS else []
        hint = f", did you mean {near[0]}?" if near else ""
        self.unknown.append(Problem(path, f"unknown field{hint}"))

    def items(self, value: Any, info: inspect.VarTupleType, path: str) -> Any:
        """Fit a list. In a list of objects, a wrong item becomes an empty object, so that the indices of other items do
        not change; in other lists it is dropped.
        """
        if not isinstance(value, list):
            return self._wrong(value, "a list", path)
        items = [self.fit(held, info.item_type, f"{path}[{index}]") for index, held in enumerate(value)]
        instead: Any = {} if isinstance(info.item_type, inspect.StructType | inspect.DictType) else _ABSENT
        kept = (instead if item is _ABSENT else item for item in items)
        return [item for item in kept if item is not _ABSENT]

    def map(self, value: Any, info: inspect.DictType, path: str) -> Any:
        """Fit a map. A null becomes empty text if the values are text, as in Go; otherwise its key is dropped."""
        if not isinstance(value, dict):
            return self._wrong(value, "a map", path)
        null = "" if isinstance(info.value_type, inspect.StrType) else _ABSENT
        fitted = {
            key: null if held is None else self.fit(held, info.value_type, f"{path}.{key}")
            for key, held in value.items()
        }
        return {key: held for key, held in fitted.items() if held is not _ABSENT}

    def integer(self, value: Any, info: inspect.IntType, path: str) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            return self._wrong(value, "a whole number", path)
        if info.ge is not None and value < info.ge:
            self.problems.append(Problem(path, f"{value} is below {info.ge}"))
            return _ABSENT
        if info.le is not None and value > info.le:
            self.problems.append(Problem(path, f"{value} is above {info.le}"))
            return _ABSENT
        return value

    def text(self, value: Any, _info: inspect.Type, path: str) -> Any:
        if isinstance(value, str):
            return value
        return self._wrong(value, "text" if isinstance(value, dict | list) else "text in quotes", path)

    def boolean(self, value: Any, _info: inspect.Type, path: str) -> Any:
        return value if isinstance(value, bool) else self._wrong(value, "true or false", path)

    def literal(self, value: Any, info: inspect.LiteralType, path: str) -> Any:
        """Fit a value to an enumeration of words; empty text counts as not given."""
        if value in info.values and isinstance(value, str):
            return value
        if value == "":
            return _ABSENT
        words = ", ".join(str(word) for word in info.values if word)
        if not isinstance(value, str):
            return self._wrong(value, f"one of {words}", path)
        self.problems.append(Problem(path, f"{_cut(value)} is not allowed, expected one of {words}"))
        return _ABSENT

    def quantity(self, value: Any, _info: inspect.Metadata, path: str) -> Any:
        """Fit a quantity, the only type with metadata; a number is converted to text."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        return value if isinstance(value, str) else self._wrong(value, "a quantity such as 100m or 64Mi", path)

    def loose(self, value: Any, info: inspect.Type, path: str) -> Any:
        """Fit an untyped value: make it safe to serialize, and drop nulls."""
        if isinstance(value, dict):
            fitted = {key: self.loose(held, info, f"{path}.{key}") for key, held in value.items() if held is not None}
            return {key: held for key, held in fitted.items() if held is not _ABSENT}
        if isinstance(value, list):
            items = [self.loose(held, info, f"{path}[{index}]") for index, held in enumerate(value) if held is not None]
            return [item for item in items if item is not _ABSENT]
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            return self._wrong(value, f"at most {LARGEST_INTEGER}", path)
        return value


_FITS: dict[type[inspect.Type], _Rule] = {
    inspect.Metadata: _Fitter.quantity,
    inspect.UnionType: _Fitter.union,
    inspect.StructType: _Fitter.struct,
    inspect.VarTupleType: _Fitter.items,
    inspect.DictType: _Fitter.map,
    inspect.IntType: _Fitter.integer,
    inspect.LiteralType: _Fitter.literal,
    inspect.StrType: _Fitter.text,
    inspect.BoolType: _Fitter.boolean,
}


def described(value: Any) -> str:
    """Describe a value and its type for an error message."""
    match value:
        case bool():
            return f"{str(value).lower()} is a boolean"
        case int() | float():
            return f"{value} is a number"
        case str():
            return f"{_cut(value)} is text"
        case list():
            return "found a list"
        case dict():
            return "found a map"
        case _:
            return "found null"


def _cut(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
