"""Reads the decisions of a log: what each was made from, in which state, and its events. Pure.

Input: the entries of a log in order; the kinds, with the settings of the processes that decided. Output: a `Recorded`
for each decision, a `Damaged` for each entry that cannot be read. Next: `redeciding`, which decides again; `whatif`,
which decides with a change.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from chronolet.history.deciding_processes import DecidingProcesses, KindsOf
from chronolet.kernel.folding import folded
from chronolet.kernel.kind import Kind
from chronolet.kernel.recording.reading import Decision, Grouping, InputReader, NotRead, RecordedEvents, Unreadable
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Entry, Event

MOST_KEPT = 200_000
"""Number of the newest entries that are kept because messages are made from them. A message from an older entry, which
has waited very long, is not read.
"""

_KERNEL = "shard/"


class Damaged(NamedTuple):
    """An entry that cannot be read; the agent leaves it out, too."""

    entry: Entry
    reason: str


class Recorded(NamedTuple):
    """A decision of the log.

    `kind` is the actor kind as the process decided; `known` the entity's state before the decision, None if it did not
    exist; `after` its state after it. `made` is what it was made from; None with `unread` (not recorded, or in a part
    of the log that was not read) or `unreadable`, which says why.
    """

    group: RecordedEvents
    kind: Kind[Any]
    key: str
    known: Any
    after: Any
    events: Sequence[Event]
    made: Decision | None
    process: str = ""
    """The process that decided; empty if the log does not say."""
    lack: Literal["", "unread", "unreadable"] = ""
    reason: str = ""

    @property
    def first(self) -> Entry:
        """The first entry of the decision."""
        return self.group.entries[0]

    def again(self) -> tuple[Event, ...]:
        """Make the decision again, and return the events; none if its input is not known. Raises what the decider
        raises.
        """
        if self.made is None:
            return ()
        decider = self.kind.decider
        state = decider.initial if self.known is None else self.known
        return tuple(decider.decide(state, self.made.message, self.made.now))


class _Owner(NamedTuple):
    """The current owner of a shard. `actor`: as in the field of its entries."""

    actor: str
    process: str
    kind: Kind[Any]
    reader: InputReader


class RecordedDecisions:
    """Reads decisions while the log is read from its beginning, or from a moment with these `states`, by kind and
    key.
    """

    def __init__(
        self,
        kinds: Iterable[Kind[Any]],
        kinds_of: KindsOf | None = None,
        states: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """`kinds`, `kinds_of`: see `DecidingProcesses`."""
        kinds = tuple(kinds)
        self._processes = DecidingProcesses(kinds, kinds_of)
        self.states: dict[str, dict[str, Any]] = {
            kind.name: dict((states or {}).get(kind.name, dict.fromkeys(kind.at_start, kind.decider.initial)))
            for kind in kinds
        }
        self._grouping = Grouping()
        self._kept = _Kept(kinds)
        self._owners: dict[str, _Owner] = {}
        """The owners that record inputs, by shard."""

    def add(self, entry: Entry) -> Iterator[Recorded | Damaged]:
        """Add the next entry; yield the decision that it shows to be complete, if any, and what cannot be read."""
        try:
            self._processes.add(entry)
            decided = _kind_name(entry.actor) in self.states and not entry.entity.startswith(_KERNEL)
            group = self._grouping.add(entry) if decided else self._grouping.end()
        except (ValueError, codec.Undecodable) as error:
            group = self._grouping.end()
            yield Damaged(entry, str(error))
        if group is not None:
            yield from self._read(group)
        self._kept.add(entry)

    def end(self) -> Iterator[Recorded | Damaged]:
        """Yield the last decision. More events of it may follow if the log goes on."""
        group = self._grouping.end()
        if group is not None:
            yield from self._read(group)

    # -- inside --------------------------------------------------------------------------------------------------
    def _read(self, group: RecordedEvents) -> Iterator[Recorded | Damaged]:
        first = group.entries[0]
        name, key = _kind_name(first.actor), first.entity.partition("/")[2]
        owner, usual = self._owner(group, name), self._processes.kind("", name)
        known = after = self.states[name].get(key)
        events, damage = _decoded(group)
        for event in events:
            after = folded(usual.decider, after, event)
        kind, process = (usual, "") if owner is None else (owner.kind, owner.process)
        found = Recorded(group, kind, key, known, after, events, None, process, "unread")
        if not damage and owner is not None:
            found = _with_input(found, owner)
        yield from damage
        yield found
        if after is None:
            self.states[name].pop(key, None)
        else:
            self.states[name][key] = after

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
        owner = _Owner(
            actor, group.process, decides, InputReader(decides, functools.partial(self._kept.up_to, decides))
        )
        self._owners[shard] = owner
        return owner


def _with_input(found: Recorded, owner: _Owner) -> Recorded:
    state = owner.kind.decider.initial if found.known is None else found.known
    try:
        return found._replace(made=owner.reader.decision(found.group, state), lack="")
    except NotRead as missing:
        return found._replace(reason=str(missing))
    except Unreadable as error:
        return found._replace(lack="unreadable", reason=str(error))


def _kind_name(actor: str) -> str:
    """Return the kind in the field `actor`, such as `pod` in `pod/3#17`."""
    return actor.partition("#")[0].partition("/")[0]


def _decoded(group: RecordedEvents) -> tuple[list[Event], list[Damaged]]:
    """Return the events that can be decoded, and the others."""
    events: list[Event] = []
    damage: list[Damaged] = []
    for entry in group.entries:
        try:
            events.append(codec.decode(entry.type, entry.data, Event))
        except codec.Undecodable as error:
            damage.append(Damaged(entry, str(error)))
    return events, damage


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
