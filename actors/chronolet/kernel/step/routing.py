"""Which shards an entry of the log or a mail concerns, and what they are told.

Comes in: entries and mails as the store gives them. Goes out: `Input`s. Decodes only what somebody subscribed. Next:
`host`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from chronolet.kernel.kind import EventRoute, Kind
from chronolet.kernel.step.ledger import Input
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Command, Entry, Event, Mail
from chronolet_schemas.keys import Shard, shard_for, shards_of

M = TypeVar("M", Event, Command)


class Router:
    """The subscriptions of all kinds of a process, and how many shards each has, as the log's first event fixed it."""

    def __init__(self, kinds: Mapping[str, Kind[Any]], shards: Mapping[str, int]) -> None:
        unknown = sorted(kinds.keys() - shards.keys())
        if unknown:
            raise ValueError(f"kinds {', '.join(unknown)}: this node's log was begun without them, only with {shards}")
        self._kinds = kinds
        self._shards = shards
        self._subscribers: dict[str, list[tuple[Kind[Any], EventRoute]]] = {}
        for kind in kinds.values():
            for event, route in kind.subscribes.items():
                name = registry.type_of(event).partition("@")[0]
                self._subscribers.setdefault(name, []).append((kind, route))

    def shards_of(self, kind: str) -> tuple[Shard, ...]:
        """All shards of a kind."""
        return shards_of(kind, self._shards[kind])

    def of_other_kinds(self) -> tuple[Shard, ...]:
        """The shards of all kinds that only other processes host."""
        others = {kind: count for kind, count in self._shards.items() if kind not in self._kinds}
        return tuple(shard for kind, count in others.items() for shard in shards_of(kind, count))

    def shard_for(self, kind: str, key: str) -> Shard:
        """The shard of an entity."""
        return shard_for(kind, self._shards[kind], key)

    def owner(self, entity: str) -> Shard | None:
        """The shard whose own an entity `pod/default/web` is; None for kinds that are not hosted here."""
        kind, _, key = entity.partition("/")
        return self.shard_for(kind, key) if kind in self._kinds else None

    def route(self, entry: Entry, among: Collection[Shard]) -> Iterable[tuple[Shard, Input]]:
        """What an entry means for those of the shards `among` that subscribed to its type."""
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
            # Without a route the kind's first shard tells of it, so that it is told once.
            grouped = {self.shards_of(kind.name)[0]: ()} if error else self._by_shard(kind.name, keys)
            for shard, keys in grouped.items():
                if shard in among:
                    at = entry.position
                    yield shard, Input("log", at, keys, event, str(at), entry.type, entry.entity, entry.data, error)

    def _foreign(self, entry: Entry, among: Collection[Shard]) -> Iterator[tuple[Shard, Input]]:
        """Something that is no entry of ours was put into the log: whoever watches the clock tells of it."""
        for kind in self._kinds.values():
            shard = self.shards_of(kind.name)[0]
            if kind.watches_clock and shard in among:
                at, error = entry.position, "it has not the fields of an entry"
                yield shard, Input("log", at, (), None, str(at), entry.type, entry.entity, entry.data, error)

    def mail(self, shard: Shard, mail: Mail) -> Input:
        """A command as its shard's host is told it."""
        kind = self._kinds[shard.kind]
        command, error = _decoded(mail.type, mail.data, Command)
        if command is not None and type(command) not in kind.commands:
            error = f"{mail.type}: {kind.name} knows no such command"
        elif command is not None and command.request != mail.request:
            error = f"{mail.type}: the envelope says request {mail.request!r}, the command {command.request!r}"
        keys: tuple[str, ...] = ()
        if command is not None and not error:
            keys, error = _routed_to(kind.commands[type(command)], command)
        if any(self.shard_for(kind.name, key) != shard for key in keys):
            error = f"{mail.type} about {', '.join(keys)}: sent to {shard}, whose entities these are not"
        return Input("mailbox", mail.id, keys, command, mail.request, mail.type, mail.entity, mail.data, error)

    def _by_shard(self, kind: str, keys: Sequence[str]) -> dict[Shard, tuple[str, ...]]:
        grouped: dict[Shard, tuple[str, ...]] = {}
        for key in keys:
            shard = self.shard_for(kind, key)
            grouped[shard] = (*grouped.get(shard, ()), key)
        return grouped


def _routed_to(route: EventRoute, message: Event | Command) -> tuple[tuple[str, ...], str]:
    try:
        return tuple(route(message)), ""
    except Exception as error:  # noqa: BLE001 - one message that a route trips over must not silence the reader
        return (), f"its route failed: {type(error).__name__}: {error}"


def _decoded(type_name: str, data: bytes, base: type[M]) -> tuple[M | None, str]:
    try:
        return codec.decode(type_name, data, base), ""
    except codec.Undecodable as error:
        return None, str(error)
