"""Makes a long history of a recorded one: the same events again and again, of other pods, at other times.

Input: the recorded entries of a real agent with ten pods; how many entries are wanted. Output: entries. Ten copies of
the recording run at the same time, each with other names of pods, so there are a hundred pods; each begins a tenth of
the recording's length after the one before. Then come the next ten, with the same names, other uids and other
containers, as if each pod had been applied again. Positions, causes and times within events are moved along. All else
is as recorded: what the events say, their order, and how much time passes between them. Next: `node`.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from chronolet_schemas.envelope import START, Entry, Position

COPIES = 10
"""The number of copies of the recording that run at the same time."""
_NAME = re.compile(r"\bweb-(\d)\b")
_HASH = re.compile(r"[0-9a-f]{12,64}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_POSITION = re.compile(r"(\d{13})-(\d+)")
_decode = msgspec.msgpack.decode
_encode = msgspec.msgpack.encode


def long_history(recorded: Sequence[Entry], count: int, earlier: int = 0) -> Iterator[Entry]:
    """Yield this many entries, oldest first. The first is `earlier` milliseconds before the first recorded one."""
    begun = recorded[0].position.milliseconds
    length = recorded[-1].position.milliseconds - begun + 1
    copies = (_Copy(recorded, number, number * length // COPIES - earlier) for number in itertools.count())
    merged = _merged(copies, begun - earlier, length)
    last = START
    for n, (copy, entry) in enumerate(itertools.islice(merged, count), 1):
        milliseconds = max(entry.position.milliseconds + copy.later, last.milliseconds)
        last = Position(milliseconds, n)
        copy.positions[entry.position] = last
        yield copy.moved(entry, last)


def _merged(copies: Iterator[_Copy], begun: int, length: int) -> Iterator[tuple[_Copy, Entry]]:
    """Yield the entries of all copies in the order of their times."""
    running: list[tuple[int, int, int]] = []
    started: list[_Copy] = []
    for copy in copies:
        started.append(copy)
        heapq.heappush(running, (copy.recorded[0].position.milliseconds + copy.later, len(started) - 1, 0))
        following = begun + (len(started)) * length // COPIES
        while running and running[0][0] < following:
            _, which, at = heapq.heappop(running)
            found = started[which]
            yield found, found.recorded[at]
            if at + 1 < len(found.recorded):
                heapq.heappush(running, (found.recorded[at + 1].position.milliseconds + found.later, which, at + 1))
            else:
                found.positions.clear()


class _Copy:
    """One copy of the recording, `later` milliseconds after it. `positions`: the new position of each entry."""

    def __init__(self, recorded: Sequence[Entry], number: int, later: int) -> None:
        self.recorded = recorded
        self.later = later
        self.positions: dict[Position, Position] = {}
        self._variant = number % COPIES
        self._salt = str(number).encode()
        self._texts: dict[str, str] = {}
        begun, ended = recorded[0].position.milliseconds, recorded[-1].position.milliseconds
        self._times = range(begun - 60_000, ended + 600_000)

    def moved(self, entry: Entry, at: Position) -> Entry:
        """Return the entry as it would be in this copy, at this position."""
        return Entry(
            at,
            entry.type,
            self._text(entry.entity),
            self._text(entry.subject),
            entry.actor,
            self._text(entry.cause),
            _encode(self._value(_decode(entry.data))) if entry.data else b"",
        )

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int) and value in self._times:
            return value + self.later
        if isinstance(value, dict):
            return {self._value(key): self._value(one) for key, one in value.items()}
        return [self._value(one) for one in value] if isinstance(value, list) else value

    def _text(self, text: str) -> str:
        if _POSITION.search(text):
            return _POSITION.sub(self._position, text)
        if text not in self._texts:
            named = _NAME.sub(lambda found: f"web-{self._variant}{found[1]}", text)
            self._texts[text] = _HASH.sub(self._hash, named)
        return self._texts[text]

    def _position(self, found: re.Match[str]) -> str:
        return str(self.positions.get(Position(int(found[1]), int(found[2])), found[0]))

    def _hash(self, found: re.Match[str]) -> str:
        """Return other digits for a uid or an id, dashes in the same places."""
        digits = iter(hashlib.sha256(self._salt + found[0].encode()).hexdigest())
        replace: Callable[[str], str] = lambda one: one if one == "-" else next(digits)  # noqa: E731
        return "".join(map(replace, found[0]))
