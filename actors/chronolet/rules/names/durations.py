"""Durations in Go's format, which the kubelet uses. Pure."""

from __future__ import annotations

_SECOND = 1_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE


def go_duration(milliseconds: int) -> str:
    """Format a duration as Go does: 0s, 353ms, 1.2s, 1m2.5s, 1h0m3s."""
    if 0 < milliseconds < _SECOND:
        return f"{milliseconds}ms"
    hours, rest = divmod(milliseconds, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    seconds = f"{rest // _SECOND}.{rest % _SECOND:03}".rstrip("0").rstrip(".")
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
