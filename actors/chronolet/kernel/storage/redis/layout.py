"""The layout of a log in Redis: the calls of `LayoutStore`, as functions of `shards.lua`.

Input: the calls. Output: their results; StoreUnreachable or StoreBroken as for all calls. Next: `store`, whose
`RedisStore` inherits `RedisLayout`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from chronolet.kernel.storage.layout import Decided, Layout, Outdated, Reshard, Resharded
from chronolet.kernel.storage.redis.replies import position, text
from chronolet.kernel.storage.store import StoreBroken
from chronolet_schemas.envelope import Record
from chronolet_schemas.keys import Keys, Shard, shards_of

_FIELDS = {"shards:": "counts", "reshard:": "requested", "reshard_refused:": "refused"}


class RedisLayout:
    """The part of a `RedisStore` that concerns the layout."""

    _keys: Keys

    @abstractmethod
    def _function(self, name: str, keys: Sequence[str], *arguments: str | bytes | int) -> list[Any]:
        """See `RedisStore`."""

    @abstractmethod
    def _query(self, keys: Sequence[str], commands: Sequence[Sequence[str | int]]) -> list[Any]:
        """See `RedisStore`."""

    @abstractmethod
    def _wake_others(self) -> None:
        """See `RedisMembers`."""

    def layout(self) -> Layout:
        flat = self._query([self._keys.meta], [("HGETALL", self._keys.meta)])[0]
        return parsed({text(name): text(value) for name, value in zip(flat[::2], flat[1::2], strict=True)})

    def request_shards(self, kind: str, count: int) -> bool:
        known = bool(self._function("request_shards", [self._keys.meta], kind, count)[1])
        self._wake_others()
        return known

    def refuse_shards(self, kind: str, count: int, reason: str) -> None:
        self._function("refuse_shards", [self._keys.meta], kind, count, reason)
        self._wake_others()

    def reshard(self, change: Reshard) -> Resharded | Outdated:
        word, answer = self._function("reshard", *_call(self._keys, change))
        if word != b"OK":
            return Outdated(text(answer))  # type: ignore[arg-type]
        self._wake_others()
        return Resharded(position(answer))

    def add_kind(self, kind: str, shards: int, record: Record) -> int:
        keys = (self._keys.meta, self._keys.log)
        return int(self._function("add_kind", keys, kind, shards, *record)[1])


def parsed(meta: Mapping[str, str]) -> Layout:
    """Return the layout that the fields of a node's hash describe. Raises StoreBroken if a count is not a positive
    number.
    """
    found: dict[str, dict[str, str]] = {name: {} for name in _FIELDS.values()}
    for field, value in meta.items():
        prefix, colon, kind = field.partition(":")
        if kind and (name := _FIELDS.get(prefix + colon)) is not None:
            found[name][kind] = value
    return Layout(
        run=meta.get("run", ""),
        counts=_numbers("shards", found["counts"]),
        requested=_numbers("reshard", found["requested"]),
        refused=found["refused"],
    )


def _numbers(field: str, found: Mapping[str, str]) -> Mapping[str, int]:
    for kind, count in found.items():
        if not (count.isascii() and count.isdigit() and int(count) > 0):
            raise StoreBroken(f"the node's hash: {field}:{kind} is {count!r}, expected a number of shards")
    return {kind: int(count) for kind, count in found.items()}


def decided_text(decided: Decided) -> str:
    """Return the tables as the text stored in a shard's hash: positions joined by commas, tables by spaces."""
    return " ".join(",".join(map(str, table)) for table in decided)


def _call(keys: Keys, change: Reshard) -> tuple[Sequence[str], *tuple[str | bytes | int, ...]]:
    """Return the keys and arguments of the function `reshard`, as `shards.lua` describes them."""
    former, new = shards_of(change.kind, change.before), shards_of(change.kind, change.after)
    union = [*former, *(shard for shard in new if shard not in former)]
    places = {shard: place for place, shard in enumerate(union, 1)}
    numbers = {shard: number for number, shard in enumerate(new, 1)}
    arguments: list[str | bytes | int] = [change.kind, change.before, change.after, str(change.log_cursor)]
    arguments += (decided_text(change.decided), int(change.unclean), change.schema, str(change.read_to), change.format)
    arguments += (len(change.records), len(change.attempts), len(change.moves))
    for shard in former:
        arguments += (change.tokens[shard], str(change.mail_ends[shard]))
    for shard in new:
        arguments += (places[shard], change.states[shard])
    for record in change.records:
        arguments += record
    for message, count in change.attempts.items():
        arguments += (message, count)
    for move in change.moves:
        arguments += (places[move.former], str(move.id), numbers[move.shard])
    named = [key for shard in union for key in _keys_of(keys, shard)]
    return (keys.meta, keys.log, *named), *arguments


def _keys_of(keys: Keys, shard: Shard) -> Sequence[str]:
    return keys.shard(shard), keys.mailbox(shard), keys.requests(shard), keys.snapshot(shard)
