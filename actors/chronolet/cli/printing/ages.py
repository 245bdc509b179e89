"""Formats times as kubectl does.

Input: milliseconds. Output: `5m3s`, `2d4h`, RFC 3339. Source: apimachinery's duration.HumanDuration.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import Final

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
YEAR = 365 * _DAY
"""Seconds. From two years on, a duration is in whole years."""

# (upper bound in seconds, unit, its letter, finer unit, its letter). The finer unit is 0 if there is none.
STEPS = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * YEAR, _DAY, "d", 0, ""),
    (8 * YEAR, YEAR, "y", _DAY, "d"),
)


class Later:
    """Stands for the current time where it is not known yet. An age up to it is a mark with the age's beginning, which
    `open_ages` finds.
    """


LATER: Final = Later()
Now = int | Later
"""Milliseconds since the epoch, or `LATER`."""
_MARK = "\ud800"
"""Begins and ends a mark. No text of a log contains it: a lone surrogate cannot be encoded."""


def human(milliseconds: int) -> str:
    """Format a duration. A negative one above -2 s counts as 0, because of clock skew; -2 s or less is `<invalid>`."""
    if milliseconds <= -2000:  # noqa: PLR2004
        return "<invalid>"
    seconds = max(0, milliseconds) // 1000
    for below, unit, letter, finer, finer_letter in STEPS:
        if seconds < below:
            rest = seconds % unit // finer if finer else 0
            return f"{seconds // unit}{letter}" + (f"{rest}{finer_letter}" if rest else "")
    return f"{seconds // YEAR}y"


def ago(then: int, now: Now) -> str:
    """Format the time from `then` to `now`, both in milliseconds; `<unknown>` if `then` is 0."""
    if not then:
        return "<unknown>"
    return f"{_MARK}{then}{_MARK}" if isinstance(now, Later) else human(now - then)


def open_ages(text: str) -> tuple[str, ...]:
    """Split a text whose ages were formatted for `LATER`. The items with odd indexes are the beginnings of the ages, in
    milliseconds; the others are the texts around them.
    """
    return tuple(text.split(_MARK))


def rfc3339(milliseconds: int, *, fraction: bool = False) -> str:
    """Format a time in UTC: `2026-11-20T23:47:41Z`, or with milliseconds if `fraction` is set."""
    moment = _second(milliseconds // 1000)
    return f"{moment}.{milliseconds % 1000:03}Z" if fraction else f"{moment}Z"


@functools.lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    """Cached, because neighbouring entries of a log have the same second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def local(milliseconds: int) -> str:
    """Format a time for `describe`: RFC 1123 in the local time zone, with a numeric offset."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone()
    return moment.strftime("%a, %d %b %Y %H:%M:%S %z")
