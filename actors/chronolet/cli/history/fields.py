"""Formats event fields for output: camelCase names in JSON, human-readable times in text.

Input: a decoded event, or plain data. Output: plain data. Next: `log`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from chronolet.cli.printing import ages

_TIMES = ("at", "deadline", "since", "first", "last")
_TIME_ENDS = ("_at", "_until", "_since")
_YEAR_2001, _YEAR_2100 = 1_000_000_000_000, 4_102_444_800_000
"""Values between these are times, in milliseconds since the epoch. Others are counts, or an unknown time (0)."""


DEEPEST = 100
"""Data of another release or program may be nested deeper, down to the limit of Python's own calls."""
TOO_DEEP = "... (nested too deeply)"


def camel(name: str) -> str:
    """Convert a name to camelCase: `exit_code` -> `exitCode`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def in_camel_case(value: Any, levels: int = DEEPEST) -> Any:
    """Convert a message to plain data, and its field names to camelCase, but not keys of maps, such as labels. What is
    more than `levels` deep is left out.
    """
    if not levels:
        return TOO_DEEP
    if isinstance(value, msgspec.Struct):
        return {name: in_camel_case(one, levels - 1) for name, one in _fields(value)}
    if isinstance(value, Mapping):
        return {str(key): in_camel_case(one, levels - 1) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [in_camel_case(one, levels - 1) for one in value]
    return value


def _fields(value: msgspec.Struct) -> list[tuple[str, Any]]:
    """Return the fields that are encoded: most message types omit fields that have their default value."""
    config = value.__struct_config__
    found: list[tuple[str, Any]] = [(config.tag_field, config.tag)] if config.tag_field else []
    for field in msgspec.structs.fields(value):
        one = getattr(value, field.name)
        if not (config.omit_defaults and not field.required and one == _default(field)):
            found.append((camel(field.encode_name), one))
    return found


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def readable(name: str, value: Any, levels: int = DEEPEST) -> Any:
    """Return a field's value with all times converted to RFC 3339 in UTC, including those inside maps and lists. What
    is more than `levels` deep is left out.
    """
    if not levels:
        return TOO_DEEP
    if isinstance(value, str):
        return value  # the common case
    if isinstance(value, dict):
        return {key: readable(str(key), one, levels - 1) for key, one in value.items()}
    if isinstance(value, list):
        return [readable(name, one, levels - 1) for one in value]
    if _is_time(name) and isinstance(value, int) and _YEAR_2001 <= value < _YEAR_2100:
        return ages.rfc3339(value, fraction=True)
    return value


@functools.lru_cache(maxsize=1024)
def _is_time(name: str) -> bool:
    return name in _TIMES or name.endswith(_TIME_ENDS)
