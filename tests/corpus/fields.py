"""Every field of a v1 Pod, found by walking the types, with its verdict from the product's table.

Input: the types of `podspec`, `rules.validation.honoured`. Output: rows in the order of the types. Next: `page` prints
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from chronolet.rules.validation.honoured import verdict_below
from chronolet.rules.validation.honoured_table import HONOURED, TABLE, Verdict
from chronolet_schemas.podspec import Pod

_MAPS_OF_A_USER = "*"


class Field(msgspec.Struct, frozen=True):
    """One field: its path as readers write it (`spec.containers[].env[].name`), its verdict and its default."""

    path: str
    verdict: Verdict
    default: Any = None


def fields() -> tuple[Field, ...]:
    """Return all fields. A struct, list of structs or map is expanded if it is honoured or if each of its nested fields
    is reported separately; otherwise it counts as one field.
    """
    return tuple(_inside(Pod, "", "", HONOURED))


def _inside(part: type, path: str, pattern: str, outer: Verdict) -> Iterator[Field]:
    """Yield the fields of a Struct. `pattern` is the path as written in the table, without `[]`."""
    for field in msgspec.structs.fields(part):
        key = field.encode_name
        here, below = _joined(path, key), _joined(pattern, key)
        default = None if field.default is msgspec.NODEFAULT else field.default
        yield from _field(field.type, here, below, verdict_below(pattern, key) or outer, default)


def _field(kind: Any, path: str, pattern: str, verdict: Verdict, default: Any) -> Iterator[Field]:
    info = _bare(inspect.type_info(kind))
    expanded = verdict.severity is None or verdict.inside
    if expanded and isinstance(info, inspect.StructType):
        yield from _inside(info.cls, path, pattern, verdict)
    elif expanded and isinstance(info, inspect.VarTupleType) and isinstance(info.item_type, inspect.StructType):
        yield from _inside(info.item_type.cls, f"{path}[]", pattern, verdict)
    elif expanded and isinstance(info, inspect.DictType):
        yield from _keys(path, pattern, verdict)
    else:
        yield Field(path, verdict, default)


def _keys(path: str, pattern: str, verdict: Verdict) -> Iterator[Field]:
    """Yield a map's keys: those that the table names, and `*` for all others."""
    named = {key.removeprefix(f"{pattern}."): found for key, found in TABLE.items() if key.startswith(f"{pattern}.")}
    others = named.pop(_MAPS_OF_A_USER, verdict)
    for key, found in named.items():
        yield Field(f"{path}.{key}", found)
    yield Field(f"{path}.{_MAPS_OF_A_USER}", others)


def _bare(info: Any) -> Any:
    """Return the type without its metadata and without None."""
    if isinstance(info, inspect.Metadata):
        return _bare(info.type)
    if isinstance(info, inspect.UnionType):
        given = [one for one in info.types if not isinstance(one, inspect.NoneType)]
        return _bare(given[0]) if len(given) == 1 else info
    return info


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
