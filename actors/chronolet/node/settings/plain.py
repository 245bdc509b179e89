"""The values of settings as plain data, without passwords: for the page /configz, and for the log.

Input: settings. Output: text, numbers, booleans, lists and maps; and back. Next: `node.http.pages`,
`node.composition.description`, `history`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from chronolet.kernel.storage.redis.urls import where
from chronolet.node.settings.settings import Settings
from chronolet.node.settings.values import Secret

_SERVERS = ("event_webhook_url", "event_api_server", "tracing_endpoint")
"""URL settings that are shown without path and query, which may contain a secret."""


def plain_value(settings: Settings, name: str) -> Any:
    """Return a setting's value. Of a URL that may contain a secret, only scheme and server are kept. Durations are in
    milliseconds.
    """
    value = getattr(settings, name)
    if name == "redis" and value:
        return where(value)  # without password and options
    if name == "docker":
        scheme, mark, rest = value.partition("://")
        return f"{scheme}{mark}{rest.rpartition('@')[2].partition('?')[0]}"
    if name in _SERVERS and value:
        parts = urlsplit(value)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if isinstance(value, tuple):
        return [str(part) for part in value]
    return str(value) if isinstance(value, Path) else value


def plain_settings(settings: Settings) -> dict[str, Any]:
    """Return all settings by name, except passwords."""
    names = (one for one in settings.__struct_fields__ if not isinstance(getattr(settings, one), Secret))
    return {name: plain_value(settings, name) for name in names}


def digest(plain: Mapping[str, Any]) -> str:
    """Return the SHA-256 of plain settings as JSON with sorted keys, in hexadecimal."""
    return hashlib.sha256(msgspec.json.encode(plain, order="deterministic")).hexdigest()


def read_settings(plain: Mapping[str, Any]) -> Settings:
    """Return the settings that a release has recorded as plain data: what this release does not know is left out, and
    what that release did not know has its default value. Raises msgspec.ValidationError for a value of another type.
    """
    known = {name: value for name, value in plain.items() if name in Settings.__struct_fields__}
    return msgspec.convert(known, Settings, dec_hook=_path)


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(f"expected {kind.__name__}, found {type(value).__name__}")
