"""The moments of the past that a person can name, and the positions of the log that they stand for.

Input: text such as `-15m`, `2026-11-21T03:00`, `03:00` or `#1234`; the log. Output: the position of the last entry up
to that moment, and its time. Next: `cli.session`, whose states, entries and present time are then those of the moment.

Entries are ordered by position, and a time means the last entry that was recorded at or before it. If the log's
positions were ahead of its clock (docs/adr/0042), entries that were recorded earlier may follow entries with a later
time: the last of them counts.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from chronolet.history.entries import FIRST_N, LARGEST_N, ArchiveReader, Late, entries, position_before_last
from chronolet.kernel.storage.store import Store
from chronolet_schemas.envelope import START, Entry, Position
from chronolet_schemas.times import time_of

FORMS = (
    "a duration before now such as -15m, a time such as 2026-11-21T03:00:00Z, '2026-11-21 03:00' or 03:00 "
    "(local if it names no zone), seconds since the epoch such as @1795812003, or an entry of the log such as #1234"
)
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO = re.compile(r"-(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|s|m|h|d))+")
_PART = re.compile(r"([0-9.]+)(ms|s|m|h|d)")
_EPOCH = re.compile(r"@([0-9]{1,11})(\.[0-9]{1,3})?")
_NUMBER = re.compile(r"#([0-9]{1,16})")
_POSITION = re.compile(r"([0-9]{1,16})-([0-9]{1,16})")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2}.*)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ].+)?")


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
    unsearched: tuple[str, ...] = ()
    """Archive files that were not searched for a later entry up to the moment, which exists only if the log's clock was
    once ahead.
    """


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
        if found := _CLOCK.fullmatch(word.upper()):
            return Time(_time_of_day(time.fromisoformat(f"{found[1]:0>2}:{found[2]}"), now, zone))
        if _DATE.fullmatch(word):
            return Time(_milliseconds(datetime.fromisoformat(word.upper()), zone))
    except (ValueError, OverflowError):
        pass
    raise MomentError(f"found {text!r}, expected {FORMS}")


def _milliseconds(moment: datetime, zone: tzinfo | None) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone) if zone else moment.astimezone()
    return round(aware.timestamp() * 1000)


def _time_of_day(clock: time, now: int, zone: tzinfo | None) -> int:
    """Return the latest such time that is not in the future. When clocks are set back, there are two in a day."""
    today = datetime.fromtimestamp(now / 1000, clock.tzinfo or zone).date()
    days = (today, today - timedelta(days=1))
    times = (datetime.combine(day, clock.replace(fold=fold)) for day in days for fold in (0, 1))
    return max(at for at in (_milliseconds(one, zone) for one in times) if at <= now)


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
    last = store.last()
    bound = Position(max(milliseconds, 0), LARGEST_N)
    first = next(entries(store, archive, bound), None)
    if first is None:
        return Located(last, milliseconds)
    late, unsearched = _late(store, archive, first, milliseconds)
    if late is not None:
        return Located(late, milliseconds, unsearched)
    if first.position.n == FIRST_N:
        raise _too_early(first, _shown(milliseconds))
    entry = _numbered(store, archive, first.position.n - 1) if first.type else None
    # Next to a foreign entry, which another program has written, there is no such number: the time is the bound.
    return Located(bound if entry is None else entry.position, milliseconds, unsearched)


def _late(store: Store, archive: ArchiveReader, first: Entry, milliseconds: int) -> Late:
    """Find the last entry that was written at or before this time, from `first` on, whose position is later. There is
    none if the clock was never ahead.
    """
    trimmed = store.archived()[1]
    late = [one.position for one in store.scan(max(first.position, trimmed)) if time_of(one) <= milliseconds]
    if late:
        return Late(late[-1])
    found = archive.last_until(milliseconds, first.position, trimmed) if trimmed > first.position else Late()
    if found.position is None and time_of(first) <= milliseconds:
        return found._replace(position=first.position)
    return found


def _at_number(store: Store, archive: ArchiveReader, number: int) -> Located:
    entry = _numbered(store, archive, number)
    if entry is not None:
        return Located(entry.position, time_of(entry))
    last = store.last()
    if number > last.n:
        raise MomentError(f"the log has no entry #{number} yet: its last one is #{last.n}")
    raise MomentError(f"the log has no entry #{number}, or it is not available: {_begins(_first(store, archive))}")


def _at_position(store: Store, archive: ArchiveReader, position: Position) -> Located:
    if position > (last := store.last()):
        raise MomentError(f"the log has no position {position} yet: its last one is {last}")
    entry = _numbered(store, archive, position.n)
    if entry is None or entry.position != position:
        begins = _begins(_first(store, archive))  # raises HistoryMissing if it is the archive that is missing
        raise MomentError(
            f"the log has no entry at position {position}: {begins}; `chronolet log -o json` prints positions"
        )
    return Located(position, time_of(entry))


def _numbered(store: Store, archive: ArchiveReader, number: int) -> Entry | None:
    """Return the entry with this number; None if there is none, or it is not available. Entries of other programs have
    no numbers: if one is the last, the numbers in the stream cannot be found by bisection.
    """
    entry = archive.numbered(number) if number <= store.archived()[1].n else None
    if entry is not None:
        return entry
    before = position_before_last(store, store.last().n - number + 1)
    entry = next(iter(store.read_log(before, 1)), None)
    if entry is not None and entry.type and entry.position.n == number:
        return entry
    return next((one for one in store.scan(START) if one.type and one.position.n == number), None)


def _first(store: Store, archive: ArchiveReader) -> Entry:
    """Return the log's first entry."""
    first = next(entries(store, archive), None)
    if first is None:
        raise MomentError("the log has no entries")
    return first


def _too_early(first: Entry, what: str) -> MomentError:
    return MomentError(f"{what} is before the beginning of the history: {_begins(first)}")


def _begins(first: Entry) -> str:
    return f"the history begins at {_shown(time_of(first))} with entry #{first.position.n}"


def _shown(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms since the epoch"
