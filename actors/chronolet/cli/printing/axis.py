"""Divides a time into parts at round times, and labels them.

Input: milliseconds since the epoch. Output: durations, labels in the local time zone. Next: `timeline`, `history`.
"""

from __future__ import annotations

from datetime import UTC, datetime

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
"""Durations in milliseconds."""
ROUND_DURATIONS = tuple(
    count * unit
    for unit, counts in (
        (SECOND, (1, 2, 5, 10, 15, 30)),
        (MINUTE, (1, 2, 5, 10, 15, 30)),
        (HOUR, (1, 2, 3, 6, 12)),
        (DAY, (1, 2, 7, 14, 28, 91, 364)),
    )
    for count in counts
)
"""Durations in milliseconds, at whose multiples an axis has labels, or a part of the time begins."""


def label(milliseconds: int, step: int) -> str:
    """Format a time, in the local time zone, for an axis whose labels are `step` milliseconds apart: `03:00`,
    `03:00:30` or `11-21`. Midnight is the date, so that an axis over several days tells them apart.
    """
    local = datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone()
    midnight = (local.hour, local.minute) == (0, 0)
    form = "%H:%M:%S" if step < MINUTE else "%m-%d" if step >= DAY or midnight else "%H:%M"
    return local.strftime(form)


def utc_offset(milliseconds: int) -> int:
    """Return the local time zone's offset from UTC at that time, in milliseconds."""
    offset = datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone().utcoffset()
    return 0 if offset is None else round(offset.total_seconds() * 1000)
