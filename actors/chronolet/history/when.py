"""The moments of the past that a person can name, and the positions of the log that they stand for.

Input: text such as `-15m`, `2026-11-21T03:00`, `03:00` or `#1234`; the log. Output: the position of the last entry up
to that moment, and its time. Next: `cli.session`, whose states, entries and present time are then those of the moment.

Entries are ordered by position, and a time means the last entry that was recorded at or before it. If the log's
positions were ahead of its clock (docs/adr/0042), entries that were recorded earlier may follow entries with a later
time: the last of them counts.
"""

from __future__ import annotations

import itertools
import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from chronolet.history.entries import LARGEST_N, ArchiveReader, entries, position_before_last
from chronolet.kernel.storage.store import Store
from chronolet_schemas.envelope import Entry, Position
from chronolet_schemas.times import time_of

FORMS = (
    "a duration before now such as -15m, a time such as 2026-11-21T03:00:00Z, '2026-11-21 03:00' or 03:00 "
    "(local if it names no zone), seconds since the epoch such as @1795812003, or an entry of the log such as #1234"
)
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO = re.compile(r"-(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d))+")
_PART = re.compile(r"([0-9.]+)(ms|s|m|h|d)")
_EPOCH = re.compile(r"@([0-9]{1,11})(\.[0-9]{1,3})?")
_NUMBER = re.compile(r"#([0-9]{1,16})")
_POSITION = re.compile(r"([0-9]{1,16})-([0-9]{1,16})")
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?")
_HOUR_DIGITS = 2
_FOLLOWING = 500
"""The number of entries after a moment that are searched for entries that were recorded earlier."""


class MomentError(ValueError):
    """A moment that cannot be understood, or that the log does not have. The text says what was found and expected."""


class Time(NamedTuple):
    """A moment by its time, in milliseconds since the epoch."""

    milliseconds: int


class Number(NamedTuple):
    """A moment by the number of an entry: right after it."""

    n: int


When = Time | Number | Position


class Located(NamedTuple):
    """The position of the last entry up to a moment, and the moment's time in milliseconds since the epoch."""

    position: Position
    milliseconds: int


def parsed(text: str, now: int, zone: tzinfo | None = None) -> When:
    """Parse the name of a moment. `now` is in milliseconds since the epoch; `zone`: the time zone of times that name
    none, by default the machine's. A time of day without a date is the latest one that is not in the future.
    """
    word = text.strip()
    if _AGO.fullmatch(word):
        return Time(now - round(sum(float(count) * _UNITS[unit] for count, unit in _PART.findall(word))))
    if found := _EPOCH.fullmatch(word):
        return Time(round(float(found[1] + (found[2] or "")) * 1000))
    if found := _NUMBER.fullmatch(word):
        return Number(int(found[1]))
    if found := _POSITION.fullmatch(word):
        return Position(int(found[1]), int(found[2]))
    try:
        return Time(_time_of_day(word, now, zone) if _CLOCK.fullmatch(word) else _milliseconds(_instant(word), zone))
    except (ValueError, OverflowError):
        raise MomentError(f"found {text!r}, expected {FORMS}") from None


def _instant(word: str) -> datetime:
    """Parse ISO 8601; a date alone is its beginning. Raises ValueError."""
    if word.isdigit():
        raise ValueError(word)  # an ISO date without hyphens looks like a number of seconds
    return datetime.fromisoformat(word)


def _milliseconds(moment: datetime, zone: tzinfo | None) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone) if zone else moment.astimezone()
    return round(aware.timestamp() * 1000)


def _time_of_day(word: str, now: int, zone: tzinfo | None) -> int:
    hour, _, rest = word.partition(":")
    clock = time.fromisoformat(f"{hour.zfill(_HOUR_DIGITS)}:{rest}")
    today = datetime.fromtimestamp(now / 1000, zone).date()
    at = _at(today, clock, zone)
    return at if at <= now else _at(today - timedelta(days=1), clock, zone)


def _at(day: date, clock: time, zone: tzinfo | None) -> int:
    return _milliseconds(datetime.combine(day, clock), zone)


# -- positions in the log ----------------------------------------------------------------------------------------------
def located(store: Store, archive: ArchiveReader, when: When, now: int) -> Located:
    """Find the moment in the log. Raises MomentError if it is in the future or before the log's beginning, and
    HistoryMissing if the archived entries that it needs are not available.
    """
    match when:
        case Time():
            return _at_time(store, archive, when.milliseconds, now)
        case Number():
            return _at_number(store, archive, when.n)
        case Position():
            return _at_position(store, archive, when)


def _at_time(store: Store, archive: ArchiveReader, milliseconds: int, now: int) -> Located:
    if milliseconds > now:
        raise MomentError(f"{_shown(milliseconds)} is in the future: it is {_shown(now)}")
    first = _first(store, archive)
    if time_of(first) > milliseconds:
        raise _too_early(first, _shown(milliseconds))
    following = entries(store, archive, Position(milliseconds, LARGEST_N))
    page = list(itertools.islice(following, _FOLLOWING))
    position = _before(store, archive, page[0], milliseconds) if page else store.last()
    while late := [entry for entry in page if time_of(entry) <= milliseconds]:  # only after a clock that was ahead
        position, page = late[-1].position, list(itertools.islice(following, _FOLLOWING))
    return Located(position, milliseconds)


def _before(store: Store, archive: ArchiveReader, following: Entry, milliseconds: int) -> Position:
    """Return the position of the entry before `following`, which is the first after a time. A foreign entry, written by
    another program, has no number; then the time stands for its position.
    """
    entry = _numbered(store, archive, following.position.n - 1) if following.type else None
    return Position(milliseconds, LARGEST_N) if entry is None else entry.position


def _numbered(store: Store, archive: ArchiveReader, number: int) -> Entry | None:
    """Return the entry with this number, which is not above that of the last one; None if it is not available."""
    entry = archive.numbered(number) if number <= store.archived()[1].n else None
    if entry is None:
        before = position_before_last(store, store.last().n - number + 1)
        entry = next(iter(store.read_log(before, 1)), None)
    return entry if entry is not None and entry.position.n == number else None


def _at_number(store: Store, archive: ArchiveReader, number: int) -> Located:
    last = store.last()
    if number > last.n:
        raise MomentError(f"the log has no entry #{number} yet: its last one is #{last.n}")
    entry = _numbered(store, archive, number)
    if entry is None:
        raise MomentError(f"entry #{number} is not available: {_begins(_first(store, archive))}")
    return Located(entry.position, time_of(entry))


def _at_position(store: Store, archive: ArchiveReader, position: Position) -> Located:
    if position > (last := store.last()):
        raise MomentError(f"the log has no position {position} yet: its last one is {last}")
    if position < (first := _first(store, archive)).position:
        raise _too_early(first, f"position {position}")
    entry = _entry_at(store, archive, position)
    return Located(position, position.milliseconds if entry is None else time_of(entry))


def _entry_at(store: Store, archive: ArchiveReader, position: Position) -> Entry | None:
    before = Position(position.milliseconds, position.n - 1)
    return next(entries(store, archive, before, position), None)


def _first(store: Store, archive: ArchiveReader) -> Entry:
    """Return the log's first entry."""
    first = next(entries(store, archive), None)
    if first is None:
        raise MomentError("the log has no entries")
    return first


def _too_early(first: Entry, what: str) -> MomentError:
    return MomentError(f"{what} is before the beginning of the history: {_begins(first)}")


def _begins(first: Entry) -> str:
    return f"it begins at {_shown(time_of(first))} with entry #{first.position.n}"


def _shown(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms since the epoch"
