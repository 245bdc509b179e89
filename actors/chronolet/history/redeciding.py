"""Decides again what a log records, and compares the events. Pure.

Input: the entries of a log in order; the kinds, with the settings of the processes that decided. Output: `Finding`s as
they are found, and a `Summary`. An owner of a shard is compared from its first event with the field `_in` on; owners
of releases that did not record inputs have none. Next: the command `replay --verify`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from chronolet.history.deciding_processes import KindsOf
from chronolet.history.recorded_decisions import Damaged, Recorded, RecordedDecisions
from chronolet.kernel.kind import Kind
from chronolet.kernel.recording.reading import Decision
from chronolet_schemas import registry
from chronolet_schemas.envelope import START, Entry, Event, Position

FindingKind = Literal["different", "redacted", "unreadable", "damaged"]


class Finding(NamedTuple):
    """A decision that cannot be reproduced.

    `different`: the same message leads to other events. `unreadable`: the message cannot be read. `damaged`: an entry
    of the log cannot be read; the agent leaves it out, too. `redacted`: the same message leads to other events, which
    may follow from what was taken out of the message, the events or the state.
    """

    kind: FindingKind
    position: Position
    """The first event of the decision that differs, or the first event of the decision."""
    actor: str
    entity: str
    reason: str


class Summary(NamedTuple):
    """What was compared. `since` is the first event that was compared; None if there is none."""

    since: Position | None
    decisions: int
    events: int
    skipped: int
    """Events that were not compared: what led to them was not recorded, or is in a part of the log that was not read,
    or an entry is damaged.
    """


class Redeciding:
    """Decides a log again while it is read from its beginning, or from a moment with these `states`, by kind and
    key.
    """

    def __init__(
        self,
        kinds: Iterable[Kind[Any]],
        kinds_of: KindsOf | None = None,
        states: Mapping[str, Mapping[str, Any]] | None = None,
        after: Position = START,
        is_redacted: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`kinds`, `kinds_of`: see `DecidingProcesses`. `after`: what comes up to this position is only read, because
        later decisions need it. `is_redacted`: says of a text whether something was taken out of it.
        """
        self._is_redacted = is_redacted
        self._after = after
        self._recorded = RecordedDecisions(kinds, kinds_of, states)
        self._counts: Counter[str] = Counter()
        self._since: Position | None = None

    def add(self, entry: Entry) -> Iterator[Finding]:
        """Add the next entry, and compare the decision that it shows to be complete, if any."""
        for one in self._recorded.add(entry):
            yield from self._compared(one)

    def end(self, *, whole: bool = True) -> Iterator[Finding]:
        """Compare the last decision. `whole`: whether no more events of it can follow."""
        for one in self._recorded.end():
            yield from self._compared(one, whole=whole)

    def summary(self) -> Summary:
        """Return what was compared so far."""
        counts = self._counts
        return Summary(self._since, counts["decisions"], counts["events"], counts["skipped"])

    # -- inside --------------------------------------------------------------------------------------------------
    def _compared(self, one: Recorded | Damaged, *, whole: bool = True) -> Iterator[Finding]:
        if isinstance(one, Damaged):
            if one.entry.position > self._after:
                yield _finding("damaged", one.entry, one.reason)
            return
        if one.first.position <= self._after:
            return
        if one.made is None:
            self._counts["skipped"] += len(one.group.entries)
            if one.lack == "unreadable":
                yield _finding("unreadable", one.first, one.reason)
            return
        self._since = self._since or one.first.position
        self._counts["decisions"] += 1
        self._counts["events"] += len(one.events)
        yield from self._decided_again(one, one.made, whole=whole)

    def _decided_again(self, one: Recorded, made: Decision, *, whole: bool) -> Iterator[Finding]:
        decider, events = one.kind.decider, one.events
        state = decider.initial if one.known is None else one.known
        name = type(made.message).__name__
        try:
            again = one.again()
        except Exception as error:  # noqa: BLE001 - a changed decider may fail in any way
            reason = f"{name} makes the decider fail: {type(error).__name__}: {error}"
            yield _finding(self._kind_of_difference(made.message, state, events), one.first, reason)
            return
        if not whole:
            again = again[: len(events)]
        if again != tuple(events):
            number, reason = _difference(name, events, again)
            found = self._kind_of_difference(made.message, state, events)
            yield _finding(found, one.group.entries[min(number, len(events) - 1)], reason)

    def _kind_of_difference(self, *of: Any) -> FindingKind:
        return "redacted" if any(self._is_redacted(repr(one)) for one in of) else "different"


def _finding(kind: FindingKind, entry: Entry, reason: str) -> Finding:
    return Finding(kind, entry.position, entry.actor, entry.entity, reason)


def _difference(message: str, recorded: Sequence[Event], again: Sequence[Event]) -> tuple[int, str]:
    """Return the number of the first event that differs, and a sentence about it."""
    number = next((n for n, pair in enumerate(zip(recorded, again, strict=False)) if pair[0] != pair[1]), None)
    if number is None:
        number = min(len(recorded), len(again))
        if len(again) > len(recorded):
            return number, f"{message} now leads to one more event, {_shown(again[number])}"
        return number, f"{message} no longer leads to {_shown(recorded[number])}"
    before, after = recorded[number], again[number]
    if type(before) is not type(after):
        return number, f"{message} now leads to {_shown(after)}, the log has {_shown(before)}"
    return number, f"{message} leads to {_name(before)} with other values: {'; '.join(_changed(before, after))}"


def _changed(before: Event, after: Event) -> Iterator[str]:
    for field in before.__struct_fields__:
        one, other = getattr(before, field), getattr(after, field)
        if one != other:
            yield f"{field} is now {other!r}, the log has {one!r}"


def _name(event: Event) -> str:
    return registry.type_of(type(event)).partition("@")[0]


def _shown(event: Event) -> str:
    return f"{_name(event)}{msgspec.json.encode(event).decode()}"
