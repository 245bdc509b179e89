"""Stamps of log entries, for drivers whose actors hear events of the log."""

from chronolet_schemas.envelope import Position
from chronolet_schemas.times import Stamp


def stamp(milliseconds: int, n: int) -> Stamp:
    """Return the stamp of an entry whose position has the right time."""
    return Stamp(Position(milliseconds, n), milliseconds)
