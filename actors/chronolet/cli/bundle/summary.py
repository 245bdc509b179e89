"""Describes a bundle in a few lines, or as one JSON object.

Input: its manifest. Output: text for `bundle open` without a command.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from chronolet.cli.printing import ages, table
from chronolet.history.bundle.format import Manifest

_UNITS = ("B", "kB", "MB", "GB")
_STEP = 1000


def size(count: int) -> str:
    """Format a number of bytes, such as `1.2MB`."""
    number, unit = float(count), 0
    while number >= _STEP and unit < len(_UNITS) - 1:
        number, unit = number / _STEP, unit + 1
    return f"{number:.3g}{_UNITS[unit]}"


def as_json(manifest: Manifest) -> str:
    """Return the manifest as one JSON object."""
    return msgspec.json.encode(manifest).decode()


def as_lines(manifest: Manifest) -> Iterator[str]:
    """Yield the lines for people."""
    redaction = manifest.redaction
    exempt = f", except {', '.join(redaction.kept)}" if redaction.kept else ""
    rows: list[tuple[str, str]] = [
        ("Node:", f"{manifest.node}{' (names are replaced)' if manifest.anonymised else ''}"),
        ("Saved:", f"{ages.rfc3339(manifest.created_at)} by chronolet {manifest.created_by}"),
        ("From:", f"{ages.rfc3339(manifest.begins_at)}{_after(manifest)}"),
        ("To:", f"{ages.rfc3339(manifest.ends_at)}, entry {_number(manifest.ends)}"),
        ("Entries:", str(manifest.count)),
        ("Redacted:", f"{redaction.values} known secret values, wherever they occur{exempt}"),
    ]
    width = max(len(name) for name, _ in rows) + 2
    yield from (f"{name:{width}}{table.plain(text)}" for name, text in rows)
    if manifest.facts:
        yield "Facts:"
    for one in manifest.facts:
        fields = " ".join(f"{name}={_short(value)}" for name, value in one.data.items())
        yield table.plain(f"  {ages.rfc3339(one.at)} {one.type.removesuffix('@1')} {fields}")


def _after(manifest: Manifest) -> str:
    whole = manifest.begins == "0-0"
    return ", the beginning of the log" if whole else f", with the states after entry {_number(manifest.begins)}"


def _number(position: str) -> str:
    return f"#{position.partition('-')[2]}"


_LONG = 80


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."
