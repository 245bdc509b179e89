"""Decides again what a log records, and compares the events. Pure.

Input: the entries of a log in order; the kinds, with the settings of the processes that decided. Output: `Finding`s as
they are found, and a `Summary`. An owner of a shard is compared from its first event with the field `_in` on; owners
of releases that did not record inputs have none. Next: the command `replay --verify`.
"""

from __future__ import annotations

import functools
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from chronolet.history.deciding_processes import DecidingProcesses, KindsOf
from chronolet.kernel.folding import folded
from chronolet.kernel.kind import Kind
from chronolet.kernel.recording.reading import Grouping, InputReader, NotRead, RecordedEvents, Unreadable
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import START, Entry, Event, Position

MOST_KEPT = 200_000
"""Number of the newest entries that are kept because messages are made from them. A message from an older entry, which
has waited very long, is not checked.
"""

_KERNEL = "shard/"


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


class _Owner(NamedTuple):
    """The current owner of a shard. `actor`: as in the field of its entries."""

    actor: str
    kind: Kind[Any]
    reader: InputReader


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
        kinds = tuple(kinds)
        self._after = after
        self._processes = DecidingProcesses(kinds, kinds_of)
        self._states: dict[str, dict[str, Any]] = {
            kind.name: dict((states or {}).get(kind.name, dict.fromkeys(kind.at_start, kind.decider.initial)))
            for kind in kinds
        }
        self._grouping = Grouping()
        self._kept = _Kept(kinds)
        self._owners: dict[str, _Owner] = {}
        """The owners that record inputs, by shard."""
        self._counts: Counter[str] = Counter()
        self._since: Position | None = None

    def add(self, entry: Entry) -> Iterator[Finding]:
        """Add the next entry, and compare the decision that it shows to be complete, if any."""
        try:
            self._processes.add(entry)
            decided = _kind_name(entry.actor) in self._states and not entry.entity.startswith(_KERNEL)
            group = self._grouping.add(entry) if decided else self._grouping.end()
        except (ValueError, codec.Undecodable) as error:
            group = self._grouping.end()
            if entry.position > self._after:
                yield _finding("damaged", entry, str(error))
        if group is not None:
            yield from self._compared(group)
        self._kept.add(entry)

    def end(self, *, whole: bool = True) -> Iterator[Finding]:
        """Compare the last decision. `whole`: whether no more events of it can follow."""
        group = self._grouping.end()
        if group is not None:
            yield from self._compared(group, whole=whole)

    def summary(self) -> Summary:
        """Return what was compared so far."""
        counts = self._counts
        return Summary(self._since, counts["decisions"], counts["events"], counts["skipped"])

    # -- inside --------------------------------------------------------------------------------------------------
    def _compared(self, group: RecordedEvents, *, whole: bool = True) -> Iterator[Finding]:
        first = group.entries[0]
        name, key = _kind_name(first.actor), first.entity.partition("/")[2]
        owner, kind = self._owner(group, name), self._processes.kind("", name)
        known = self._states[name].get(key)
        events, damage = _decoded(group)
        if damage or owner is None:
            self._count_skipped(group)
            yield from damage if first.position > self._after else ()
        else:
            yield from self._decided_again(owner, group, known, events, whole=whole)
        for event in events:
            known = folded(kind.decider, known, event)
        if known is None:
            self._states[name].pop(key, None)
        else:
            self._states[name][key] = known

    def _owner(self, group: RecordedEvents, kind: str) -> _Owner | None:
        """Return the owner that made the decision; None if it has recorded nothing so far."""
        actor = group.entries[0].actor
        shard = actor.partition("#")[0]
        owner = self._owners.get(shard)
        if owner is not None and owner.actor == actor and not group.process:
            return owner
        if not group.is_recorded:
            return None
        decides = self._processes.kind(group.process, kind)
        owner = _Owner(actor, decides, InputReader(decides, functools.partial(self._kept.up_to, decides)))
        self._owners[shard] = owner
        return owner

    def _decided_again(
        self, owner: _Owner, group: RecordedEvents, known: Any, events: Sequence[Event], *, whole: bool
    ) -> Iterator[Finding]:
        decider, first = owner.kind.decider, group.entries[0]
        state = decider.initial if known is None else known
        try:
            message, now = owner.reader.decision(group, state)
        except NotRead:
            self._count_skipped(group)
            return
        except Unreadable as error:
            self._count_skipped(group)
            yield from (_finding("unreadable", first, str(error)),) if first.position > self._after else ()
            return
        if first.position <= self._after:
            return
        self._since = self._since or first.position
        self._counts["decisions"] += 1
        self._counts["events"] += len(events)
        try:
            again = list(decider.decide(state, message, now))
        except Exception as error:  # noqa: BLE001 - a changed decider may fail in any way
            reason = f"{type(message).__name__} makes the decider fail: {type(error).__name__}: {error}"
            yield _finding(self._kind_of_difference(message, state, events), first, reason)
            return
        if not whole:
            again = again[: len(events)]
        if again != list(events):
            number, reason = _difference(type(message).__name__, events, again)
            found = self._kind_of_difference(message, state, events)
            yield _finding(found, group.entries[min(number, len(events) - 1)], reason)

    def _kind_of_difference(self, *of: Any) -> FindingKind:
        return "redacted" if any(self._is_redacted(repr(one)) for one in of) else "different"

    def _count_skipped(self, group: RecordedEvents) -> None:
        if group.entries[0].position > self._after:
            self._counts["skipped"] += len(group.entries)


def _kind_name(actor: str) -> str:
    """Return the kind in the field `actor`, such as `pod` in `pod/3#17`."""
    return actor.partition("#")[0].partition("/")[0]


def _finding(kind: FindingKind, entry: Entry, reason: str) -> Finding:
    return Finding(kind, entry.position, entry.actor, entry.entity, reason)


def _decoded(group: RecordedEvents) -> tuple[list[Event], list[Finding]]:
    """Return the events that can be decoded, and a finding for each of the others."""
    events: list[Event] = []
    damage: list[Finding] = []
    for entry in group.entries:
        try:
            events.append(codec.decode(entry.type, entry.data, Event))
        except codec.Undecodable as error:
            damage.append(_finding("damaged", entry, str(error)))
    return events, damage


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


class _Kept:
    """The newest entries to which a kind subscribes."""

    def __init__(self, kinds: Iterable[Kind[Any]]) -> None:
        self._types = {registry.type_of(event).partition("@")[0] for kind in kinds for event in kind.subscribes}
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def add(self, entry: Entry) -> None:
        if entry.type.partition("@")[0] in self._types:
            self._entries[str(entry.position)] = entry
            if len(self._entries) > MOST_KEPT:
                self._entries.popitem(last=False)

    def up_to(self, kind: Kind[Any], position: str, count: int) -> Sequence[Entry]:
        """Return the entry at the position, or the last `count` entries up to it of the same type and for the same
        entities of the kind. Raises NotRead.
        """
        last = self._entries.get(position)
        if last is None:
            raise NotRead(f"the entry at {position}, from which the message was made, is not in what was read")
        if count == 1:
            return (last,)
        event, keys = _event_and_keys(kind, last)
        found = [last]
        for at in reversed(self._entries):
            entry = self._entries[at]
            if entry.position >= last.position or not _is_version_of(entry, last):
                continue
            other, its_keys = _event_and_keys(kind, entry)
            if type(other) is type(event) and its_keys == keys:
                found.append(entry)
                if len(found) == count:
                    return tuple(reversed(found))
        raise NotRead(f"only {len(found)} of the {count} entries up to {position} are in what was read")


def _is_version_of(entry: Entry, other: Entry) -> bool:
    return entry.type.partition("@")[0] == other.type.partition("@")[0]


def _event_and_keys(kind: Kind[Any], entry: Entry) -> tuple[Event, tuple[str, ...]]:
    event = codec.decode(entry.type, entry.data, Event)
    return event, tuple(kind.subscribes[type(event)](event))
