"""Moments as the Kubernetes API writes them. Comes in: milliseconds. Goes out: text. Next: whoever shows objects."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(milliseconds: int) -> str:
    """A moment in UTC, `2026-11-20T23:47:41Z`; of 0 too."""
    return datetime.fromtimestamp(milliseconds // 1000, UTC).isoformat().replace("+00:00", "Z")


def rfc3339_micro(milliseconds: int) -> str:
    """With the six digits of the API's MicroTime."""
    return f"{rfc3339(milliseconds).removesuffix('Z')}.{milliseconds % 1000:03}000Z"
