"""Parsers of settings' values: one for flags, environment and file alike.

Comes in: where the value stands (for the error), and what was found there. Goes out: the value, or `SettingsError`.
Next: `settings`, whose table names a parser for each setting.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


class SettingsError(ValueError):
    """A setting cannot be used: names it, what was found, what is expected."""


def text(what: str, value: Any) -> str:
    """Non-empty text."""
    if not isinstance(value, str) or not value.strip():
        raise SettingsError(f"{what}: found {value!r}, expected text")
    return value.strip()


def any_text(what: str, value: Any) -> str:
    """Text, possibly empty."""
    return "" if value == "" else text(what, value)


def boolean(what: str, value: Any) -> bool:
    """`true` or `false`, in a flag as text."""
    found = {"true": True, "false": False}.get(str(value).strip().lower())
    if found is None:
        raise SettingsError(f"{what}: found {value!r}, expected true or false")
    return found


def number(low: int, high: int) -> Callable[[str, Any], int]:
    """A parser of whole numbers in a range."""

    def parse(what: str, value: Any) -> int:
        digits = str(value).strip()
        if isinstance(value, bool) or not digits.isascii() or not digits.isdigit() or not low <= int(digits) <= high:
            raise SettingsError(f"{what}: found {value!r}, expected a whole number from {low} to {high}")
        return int(digits)

    return parse


def one_of(*choices: str) -> Callable[[str, Any], str]:
    """A parser that takes one of a few words."""

    def parse(what: str, value: Any) -> str:
        if value not in choices:
            raise SettingsError(f"{what}: found {value!r}, expected one of {', '.join(choices)}")
        return str(value)

    return parse


_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def duration(what: str, value: Any) -> int:
    """A Go duration (`10s`, `1m30s`, `500ms`) in milliseconds; above zero."""
    rest, total = str(value).strip(), 0.0
    while rest:
        digits = rest[: len(rest) - len(rest.lstrip("0123456789."))]
        unit = next((unit for unit in ("ms", "s", "m", "h") if rest[len(digits) :].startswith(unit)), "")
        if not unit or not digits.replace(".", "", 1).isdigit():
            total = 0.0
            break
        total += float(digits) * _UNITS[unit]
        rest = rest[len(digits) + len(unit) :]
    if total < 1:
        raise SettingsError(f"{what}: found {value!r}, expected a duration above zero such as 10s or 1m30s")
    return int(total)


def some_of(*choices: str) -> Callable[[str, Any], tuple[str, ...]]:
    """A parser of words separated by commas; each once, in the order of `choices`."""

    def parse(what: str, value: Any) -> tuple[str, ...]:
        names = {name.strip() for name in text(what, value).split(",") if name.strip()}
        if not names or not names <= set(choices):
            raise SettingsError(f"{what}: found {value!r}, expected some of {', '.join(choices)}")
        return tuple(name for name in choices if name in names)

    return parse


def folder(what: str, value: Any) -> Path:
    """An absolute path; `~` is the home folder."""
    return Path(text(what, value)).expanduser().absolute()


def folders(what: str, value: Any) -> tuple[Path, ...]:
    """Absolute paths, in a flag separated by commas; possibly none."""
    found = value if isinstance(value, list) else [part for part in any_text(what, value).split(",") if part.strip()]
    return tuple(folder(what, one) for one in found)


def _has_port_and_database(found: str) -> bool:
    """Whether port and database, where given, are numbers."""
    try:
        parts = urlsplit(found)
        return parts.port != 0 and all(db.isdigit() for db in parse_qs(parts.query).get("db", []))
    except ValueError:
        return False


def url(*schemes: str) -> Callable[[str, Any], str]:
    """A parser of URLs with one of these schemes."""

    def parse(what: str, value: Any) -> str:
        found = text(what, value)
        scheme, _, rest = found.partition("://")
        if scheme not in schemes or not rest or not _has_port_and_database(found):
            raise SettingsError(f"{what}: found {found!r}, expected a URL such as {schemes[0]}://...")
        return found

    return parse
