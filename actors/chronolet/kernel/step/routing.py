"""Routes log entries and mailbox commands to the shards that they concern.

Input: log entries and mailbox messages from the store. Output: `Input`s per shard. Decodes an entry only if a kind
subscribes to its type. Next: `host`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from chronolet.kernel.kind import EventRoute, Kind
from chronolet.kernel.step.input import Input
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Command, Entry, Event, Mail
from chronolet_schemas.keys import Shard, shard_for, shards_of
from chronolet_schemas.times import time_of

M = TypeVar("M", Event, Command)


class Router:
    """The subscriptions of a process's kinds, and the shard count of each kind. If the layout changes, a new router
    takes its place.
    """

    def __init__(self, kinds: Mapping[str, Kind[Any]], shards: Mapping[str, int]) -> None:
        unknown = sorted(kinds.keys() - shards.keys())
        if unknown:
            raise ValueError(f"kinds {', '.join(unknown)}: this node's log does not have them, only {shards}")
        self._kinds = kinds
        self._shards = shards
        self._subscribers: dict[str, list[tuple[Kind[Any], EventRoute]]] = {}
        for kind in kinds.values():
            for event, route in kind.subscribes.items():
                name = registry.type_of(event).partition("@")[0]
                self._subscribers.setdefault(name, []).append((kind, route))

    @property
    def counts(self) -> Mapping[str, int]:
        """The shard count of each kind of the node."""
        return self._shards

    def count(self, kind: str) -> int:
        """Return the number of shards of a kind."""
        return self._shards[kind]

    def shards_of(self, kind: str) -> tuple[Shard, ...]:
        """Return all shards of a kind."""
        return shards_of(kind, self._shards[kind])

    def of_other_kinds(self) -> tuple[Shard, ...]:
        """Return the shards of all kinds that this process does not host."""
        others = {kind: count for kind, count in self._shards.items() if kind not in self._kinds}
        return tuple(shard for kind, count in others.items() for shard in shards_of(kind, count))

    def shard_for(self, kind: str, key: str) -> Shard:
        """Return the shard that owns the entity `key` of a kind."""
        return shard_for(kind, self._shards[kind], key)

    def owner(self, entity: str) -> Shard | None:
        """Return the shard that owns an entity such as `pod/default/web`; None if its kind is not hosted here."""
        kind, _, key = entity.partition("/")
        return self.shard_for(kind, key) if kind in self._kinds else None

    def route(self, entry: Entry, among: Collection[Shard]) -> Iterable[tuple[Shard, Input]]:
        """Return an entry's inputs for those shards of `among` that it concerns according to the subscriptions of their
        kinds. Foreign data goes to the kind that watches the clock.
        """
        subscribers = self._subscribers.get(entry.type.partition("@")[0])
        if subscribers:
            return self._routed(entry, subscribers, among)
        return () if entry.type else self._foreign(entry, among)

    def _routed(
        self, entry: Entry, subscribers: Sequence[tuple[Kind[Any], EventRoute]], among: Collection[Shard]
    ) -> Iterator[tuple[Shard, Input]]:
        event, unreadable = _decoded(entry.type, entry.data, Event)
        for kind, route in subscribers:
            keys, error = ((), unreadable) if event is None else _routed_to(route, event)
            # If decoding or routing fails, only the kind's first shard gets the entry, so that it is quarantined once.
            time = time_of(entry)
            grouped = {self.shards_of(kind.name)[0]: ()} if error else self._by_shard(kind.name, keys)
            for shard, keys in grouped.items():
                if shard in among:
                    at = entry.position
                    item = Input("log", at, keys, event, str(at), entry.type, entry.entity, entry.data, error, time)
                    yield shard, item

    def _foreign(self, entry: Entry, among: Collection[Shard]) -> Iterator[tuple[Shard, Input]]:
        """Route foreign data, which another program wrote to the log, to the kind that watches the clock. Its host
        quarantines the data and records an event.
        """
        for kind in self._kinds.values():
            shard = self.shards_of(kind.name)[0]
            if kind.watches_clock and shard in among:
                at, error = entry.position, "it lacks the fields of a log entry: another program wrote it"
                yield shard, Input("log", at, (), None, str(at), entry.type, entry.entity, entry.data, error)

    def mail(self, shard: Shard, mail: Mail) -> Input:
        """Turn a mailbox message into an input of its shard's host. The input contains an error (`undecodable`) if the
        command is undecodable, is unknown to the kind, has another request id than its envelope, cannot be routed, or
        was sent to the wrong shard.
        """
        kind = self._kinds[shard.kind]
        command, error = _decoded(mail.type, mail.data, Command)
        if command is not None and type(command) not in kind.commands:
            error = f"{mail.type}: {kind.name} has no such command"
        elif command is not None and command.request != mail.request:
            error = f"{mail.type}: the envelope has request {mail.request!r}, but the command {command.request!r}"
        keys: tuple[str, ...] = ()
        if command is not None and not error:
            keys, error = _routed_to(kind.commands[type(command)], command)
        if any(self.shard_for(kind.name, key) != shard for key in keys):
            error = f"{mail.type} about {', '.join(keys)}: sent to {shard}, which does not own these entities"
        return Input("mailbox", mail.id, keys, command, mail.request, mail.type, mail.entity, mail.data, error)

    def owner_of_mail(self, kind: str, mail: Mail) -> Shard:
        """Return the shard that owns the entity of a waiting command. If the command cannot be decoded or routed, use
        the entity that the envelope names: that shard's host quarantines it.
        """
        command, _ = _decoded(mail.type, mail.data, Command)
        routes = self._kinds[kind].commands
        keys = _routed_to(routes[type(command)], command)[0] if command is not None and type(command) in routes else ()
        return self.shard_for(kind, keys[0] if keys else mail.entity.partition("/")[2])

    def _by_shard(self, kind: str, keys: Sequence[str]) -> dict[Shard, tuple[str, ...]]:
        grouped: dict[Shard, tuple[str, ...]] = {}
        for key in keys:
            shard = self.shard_for(kind, key)
            grouped[shard] = (*grouped.get(shard, ()), key)
        return grouped


def _routed_to(route: EventRoute, message: Event | Command) -> tuple[tuple[str, ...], str]:
    try:
        return tuple(route(message)), ""
    except Exception as error:  # noqa: BLE001 - one message whose route fails must not stop the reader
        return (), f"its route failed: {type(error).__name__}: {error}"


def _decoded(type_name: str, data: bytes, base: type[M]) -> tuple[M | None, str]:
    try:
        return codec.decode(type_name, data, base), ""
    except codec.Undecodable as error:
        return None, str(error)
