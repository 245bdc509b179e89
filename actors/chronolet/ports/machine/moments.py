"""Formats times for the Kubernetes API. Input: milliseconds since the epoch. Output: text. Next: all API objects."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(milliseconds: int) -> str:
    """Format a time in UTC: `2026-11-20T23:47:41Z`. 0 is not special: it is formatted as the epoch."""
    return datetime.fromtimestamp(milliseconds // 1000, UTC).isoformat().replace("+00:00", "Z")


def rfc3339_micro(milliseconds: int) -> str:
    """Format a time in UTC with six decimal places, which is the format of the API's MicroTime."""
    return f"{rfc3339(milliseconds).removesuffix('Z')}.{milliseconds % 1000:03}000Z"
