"""The record of a node's site in Redis: the machine and the engine on which the node lives (docs/adr/0035).

Input: a site, the log's run, the tokens of shards. Output: the recorded site, written together with its event by one
function (`site.lua`); the published refusals. Errors are those of `store`. Next: `node.site`, and
`chronolet node move`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from chronolet.kernel.storage.redis import library
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.kernel.storage.redis.errors import RedisError, ResponseError, no_function, translated
from chronolet.kernel.storage.redis.replies import text
from chronolet.kernel.storage.store import StoreBroken
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.keys import Keys, Shard

_SECONDS = 5.0
"""Time-out of a call. Short, because a supervisor waits for the first call."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Where a node lives: a machine, and an engine by its id and its root folder. Two engines of one machine may report
    the same id.
    """

    machine_id: str
    engine_id: str
    engine_root: str

    def __str__(self) -> str:
        return f"machine {self.machine_id}, {engine_text(self.engine_id, self.engine_root)}"


def engine_text(engine_id: str, root: str) -> str:
    """Describe an engine in messages: `engine ABCD:EFGH (/var/lib/docker)`."""
    return f"engine {engine_id or 'without an id'} ({root or 'no root folder'})"


class Recorded(NamedTuple):
    """The run of the log (empty: there is no log) and the site recorded in it (None: none yet)."""

    run: str
    site: Site | None


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a process that may not host some kinds: the kinds, and the reason in one line."""

    kinds: tuple[str, ...]
    reason: str


class RedisSites:
    """The site of one node. Each instance has its own connection. Raises ValueError for an unusable URL."""

    def __init__(self, url: str, node: str) -> None:
        self._node = node
        self._keys = Keys(node)
        self._channel = Channel(Address(url), _SECONDS)

    def recorded(self) -> Recorded:
        """Return the log's run and its recorded site, in one round trip. Raises StoreUnreachable, StoreBroken."""
        run, site = self._query("HMGET", self._keys.meta, "run", "site")
        return Recorded(text(run or b""), self._decoded(site) if site else None)

    def record(
        self, run: str, expected: Site | None, site: Site, actor: str, tokens: Mapping[Shard, str] | None = None
    ) -> bool:
        """Record `site` in place of `expected`, and write the event, atomically. Idempotent. Returns False if another
        site is recorded, if a shard no longer has its token in `tokens`, or if `run` is not the log's run.

        `actor`: who records the site, such as `process/<id>`. Raises StoreUnreachable, StoreBroken.
        """
        given = tokens or {}
        event = kernel.SiteRecorded(
            node=self._node,
            machine_id=site.machine_id,
            engine_id=site.engine_id,
            engine_root=site.engine_root,
            former_machine_id=expected.machine_id if expected else "",
            former_engine_id=expected.engine_id if expected else "",
            former_engine_root=expected.engine_root if expected else "",
        )
        shards = [self._keys.shard(shard) for shard in given]
        keys = (self._keys.meta, self._keys.log, *shards)
        record: tuple[str | bytes, ...] = (
            registry.type_of(kernel.SiteRecorded),
            f"node/{self._node}",
            "",
            actor,
            "",
            codec.encode(event),
        )
        arguments: list[str | bytes] = [run, _encoded(expected), _encoded(site), *record, *given.values()]
        reply = self._function("FCALL", "chronolet_record_site_1", len(keys), *keys, *arguments)
        if reply[0] == b"BROKEN":
            raise StoreBroken(f"record_site was refused and nothing was written: {text(reply[1])}")
        return bool(reply[0] == b"OK")

    def refuse(self, process: str, refused: Refused | None) -> None:
        """Publish which kinds this process may not host, and why; with None, withdraw its refusal. Publishing also
        removes the refusals of processes without a lease.
        """
        key = self._keys.refusals
        if refused is None:
            self._query("HDEL", key, process)
            return
        self._query("HSET", key, process, msgspec.json.encode(refused))
        others = [text(name) for name in self._query("HKEYS", key) if text(name) != process]
        if dead := [one for one in others if not self._query("EXISTS", self._keys.alive(one))]:
            self._query("HDEL", key, *dead)

    def refusals(self) -> Mapping[str, Refused]:
        """Return the published refusals by process. The refusal of a killed process remains, so callers must compare
        them with the live processes.
        """
        flat = self._query("HGETALL", self._keys.refusals)
        found: dict[str, Refused] = {}
        for name, value in zip(flat[::2], flat[1::2], strict=True):
            try:
                found[text(name)] = msgspec.json.decode(value, type=Refused)
            except msgspec.DecodeError:
                continue  # not written by `refuse`; refusals are only informational
        return found

    def close(self) -> None:
        """Close the connection."""
        self._channel.disconnect()

    def _decoded(self, site: bytes) -> Site:
        try:
            return msgspec.json.decode(site, type=Site)
        except msgspec.DecodeError as error:
            raise StoreBroken(
                f"{self._keys.meta}: field site: found {text(site)[:100]!r}, expected a site as JSON ({error}): "
                "the node hosts nothing that touches its machine until the field is repaired"
            ) from error

    def _function(self, *command: str | bytes | int) -> list[Any]:
        """Call a function. Loads the libraries first if they are missing, as after `FUNCTION FLUSH`."""
        try:
            reply: list[Any] = self._channel.call(*command)
        except ResponseError as error:
            if not no_function(error):
                raise translated(error, self._channel.where) from error
            library.load(self._channel)
            reply = self._query(*command)
        except RedisError as error:
            raise translated(error, self._channel.where) from error
        return reply

    def _query(self, *command: str | bytes | int) -> Any:
        try:
            return self._channel.call(*command)
        except RedisError as error:
            raise translated(error, self._channel.where) from error


def _encoded(site: Site | None) -> bytes:
    """Encode a site. Equal sites have equal bytes, because `site.lua` compares the bytes."""
    return b"" if site is None else msgspec.json.encode(site)
