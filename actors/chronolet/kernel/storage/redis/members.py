"""The members of a node in Redis, and the handover of its shards, by plain commands and two functions.

Input: the calls of the `Members` Protocol. Output: their results. Next: `store`, whose `RedisStore` inherits
`RedisMembers`. The fields of the node's hash `meta` that concern members:

    member:<process>   the process's entry, as JSON
    drain:<process>    present if the process was asked to drain
    process:<process>  the counter of its renewals, written by the lease

Each call that may make other processes act also adds an entry to the stream `membership`, which wakes them.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chronolet.kernel.storage.members import HANDOVER_MILLISECONDS, Handover, Member, Survey, decode, encode
from chronolet.kernel.storage.redis.layout import parsed
from chronolet.kernel.storage.redis.replies import text
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet_schemas.keys import Keys, Shard


class RedisMembers:
    """Implements `Members` in Redis. `RedisStore` provides `_function` and `_query`."""

    _keys: Keys

    @abstractmethod
    def _function(self, name: str, keys: Sequence[str], *arguments: str | bytes | int) -> list[Any]:
        """See `RedisStore`."""

    @abstractmethod
    def _query(self, keys: Sequence[str], commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        """See `RedisStore`."""

    def _wake_others(self) -> None:
        """Wake the processes that wait for a change of the members. If that fails, they notice the change at their next
        regular look; the change itself has been made, and must not be reported as failed.
        """
        with contextlib.suppress(StoreBroken, StoreUnreachable):
            self._query([self._keys.membership], [("XADD", self._keys.membership, "MAXLEN", 1, "*", "", "")])

    def join(self, process: str, member: Member, *, seen: Member | None, counter: str) -> bool:
        before = encode(seen) if seen is not None else b""
        if self._function("join", (self._keys.meta,), process, encode(member), before, counter)[0] != b"OK":
            return False
        self._wake_others()
        return True

    def publish(self, process: str, member: Member) -> None:
        meta = self._keys.meta
        self._query([meta], [("HSET", meta, f"member:{process}", encode(member))])
        self._wake_others()

    def survey(self, shards: Sequence[Shard]) -> Survey:
        meta = self._keys.meta
        try:
            flat, *tokens = self._query(
                [meta, *map(self._keys.shard, shards)],
                [("HGETALL", meta), *(("HGET", self._keys.shard(shard), "token") for shard in shards)],
            )
        except StoreBroken:
            flat, tokens = self._query([meta], [("HGETALL", meta)])[0], [self._token(shard) for shard in shards]
        found = {text(name): value for name, value in zip(flat[::2], flat[1::2], strict=True)}
        entries = {process: decode(value) for process, value in _named(found, "member:")}
        return Survey(
            run=text(found.get("run", b"")),
            counters={process: text(value) for process, value in _named(found, "process:")},
            members={process: entry for process, entry in entries.items() if entry is not None},
            drained=frozenset(process for process, _ in _named(found, "drain:")),
            tokens={shard: text(token or b"") for shard, token in zip(shards, tokens, strict=True)},
            layout=parsed({name: text(value) for name, value in found.items()}),
        )

    def _token(self, shard: Shard) -> bytes | None:
        key = self._keys.shard(shard)
        try:
            token: bytes | None = self._query([key], [("HGET", key, "token")])[0]
        except StoreBroken:
            return None
        return token

    def drain(self, process: str, *, drains: bool) -> None:
        meta, field = self._keys.meta, f"drain:{process}"
        self._query([meta], [("HSET", meta, field, "1") if drains else ("HDEL", meta, field)])
        self._wake_others()

    def release(self, shard: Shard, token: str, notes: bytes) -> bool:
        keys = (self._keys.shard(shard), self._keys.handover(shard))
        if self._function("release", keys, token, notes, HANDOVER_MILLISECONDS)[0] != b"OK":
            return False
        self._wake_others()
        return True

    def handovers(self, shards: Sequence[Shard]) -> Mapping[Shard, Handover]:
        keys = [self._keys.handover(shard) for shard in shards]
        found = self._query(keys, [("HMGET", key, "token", "notes") for key in keys]) if keys else []
        return {
            shard: Handover(text(token), notes)
            for shard, (token, notes) in zip(shards, found, strict=True)
            if token is not None and notes is not None
        }


def _named(found: Mapping[str, bytes], prefix: str) -> Iterable[tuple[str, bytes]]:
    return ((name[len(prefix) :], value) for name, value in found.items() if name.startswith(prefix))
