"""Stamps of log entries, for drivers whose actors receive events from the log."""

from chronolet_schemas.envelope import Position
from chronolet_schemas.times import Stamp


def stamp(milliseconds: int, n: int) -> Stamp:
    """Return the stamp of an entry that was written at the time in its position."""
    return Stamp(Position(milliseconds, n), milliseconds)
