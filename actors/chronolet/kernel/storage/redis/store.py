"""The node's store in Redis: all writes to the log and to the shards go through the functions in `functions/`.

Input: the calls of the `Store` Protocol. Output: their results; StoreUnreachable or StoreBroken, with one clear line,
if the server cannot serve the call. There are four connections: one for steps, one for the blocking reader, one for the
lease (so that a stuck server is noticed within a second), and one for all other calls. A scan opens its own. Next:
hosts, reader, lease, keeper, CLI.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn

from msgspec import Struct

from chronolet.kernel.storage.redis import library, replies, scan
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.kernel.storage.redis.errors import ConnectionLost, RedisError, ResponseError, no_function, translated
from chronolet.kernel.storage.redis.layout import RedisLayout
from chronolet.kernel.storage.redis.members import RedisMembers
from chronolet.kernel.storage.redis.reader import Reader
from chronolet.kernel.storage.redis.replies import position, text
from chronolet.kernel.storage.redis.step import Commits
from chronolet.kernel.storage.store import (
    FIRST_BEAT,
    Acquired,
    Beat,
    Committed,
    Conflict,
    Fenced,
    Head,
    Inputs,
    NotFree,
    Proof,
    Renewed,
    Run,
    Snapshot,
    Step,
    StoreBroken,
    StoreUnreachable,
    owner_of,
)
from chronolet_schemas.envelope import Entry, Mail, Position, Record
from chronolet_schemas.keys import NODES, Keys, Shard


class Timeouts(Struct, frozen=True, kw_only=True):
    """How long the server may be silent before a call fails, in seconds. Each connection has its own time-out."""

    step_seconds: float = 5.0
    """Time-out of one attempt at a step."""
    resending_seconds: float = 10.0
    """How long a step that gets no reply is resent."""
    lease_seconds: float = 0.8
    """Time-out of a renewal of the lease. Below 1 s, so that a stuck server is noticed before the lease expires."""
    query_seconds: float = 10.0
    """Time-out of any other call."""
    scan_seconds: float = 30.0
    """Time-out of one page of a scan."""
    wait_margin_seconds: float = 5.0
    """How long a blocking read may take in addition to its blocking time."""


_TIMEOUTS = Timeouts()
_PROCESS = b"process:"
"""The prefix of the fields of the node's hash that name processes."""


class RedisStore(RedisMembers, RedisLayout):
    """The `Store` of one node on the server at a URL: redis://, rediss:// (TLS) or unix://, with password and database
    as parsed by `urls`.

    `strict` turns warnings about the server's settings into errors. Raises ValueError for an unusable URL.
    """

    def __init__(self, url: str, node: str, *, strict: bool = False, timeouts: Timeouts = _TIMEOUTS) -> None:
        self._address = Address(url)
        self._keys = Keys(node)
        self._strict = strict
        self._scan_seconds = timeouts.scan_seconds
        self._steps = Channel(self._address, timeouts.step_seconds)
        self._lease = Channel(self._address, timeouts.lease_seconds)
        self._queries = Channel(self._address, timeouts.query_seconds)
        self._commits = Commits(self._steps, self._keys, timeouts.resending_seconds)
        self._reader = Reader(self._address, self._keys, self._queries, margin_seconds=timeouts.wait_margin_seconds)

    # -- starting ------------------------------------------------------------------------------------------------

    def check(self) -> Sequence[str]:
        try:
            warnings = library.inspect_server(self._queries)
            if warnings and self._strict:
                raise StoreUnreachable(warnings[0], healing=False)
            library.load(self._queries)
        except RedisError as error:
            raise translated(error, self._address.where) from error
        return warnings

    def begin(self, run: str, shards: Mapping[str, int], record: Record) -> Run:
        pairs = [part for kind in sorted(shards) for part in (kind, str(shards[kind]))]
        reply = self._function("begin", (self._keys.meta, self._keys.log), run, len(shards), *pairs, *record)
        found, *counts = (text(part) for part in reply[1:])
        fixed = {kind: int(count) for kind, count in zip(counts[::2], counts[1::2], strict=True)}
        # A repeat after a lost reply finds the run that this call began.
        return Run(run=found, shards=fixed, new=found == run)

    def record(self, run: str, record: Record) -> bool:
        return bool(self._function("record", (self._keys.meta, self._keys.log), run, *record)[0] == b"OK")

    def run(self) -> str:
        meta = self._keys.meta
        return text(self._query([meta], [("HGET", meta, "run")])[0] or b"")

    # -- leases and ownership ------------------------------------------------------------------------------------

    def renew(self, process: str, info: str, ttl_milliseconds: int, beat: Beat = FIRST_BEAT) -> Renewed:
        keys = (self._keys.alive(process), self._keys.meta, *map(self._keys.shard, beat.shards))
        arguments = (process, info, ttl_milliseconds, beat.number, beat.answered)
        _, known, *tokens = self._function("renew", keys, *arguments, channel=self._lease, version=2)
        return Renewed(known=bool(known), tokens=dict(zip(beat.shards, map(text, tokens), strict=True)))

    def retire(self, process: str, shards: Sequence[tuple[Shard, str]]) -> None:
        hashes = [self._keys.shard(shard) for shard, _ in shards]
        tokens = [token for _, token in shards]
        self._function("retire", (self._keys.alive(process), self._keys.meta, *hashes), process, *tokens)
        self._wake_others()

    def announce(self, line: str) -> None:
        """Write the node's line into the server's list of nodes. The list's key contains no hash tag of a node, so no
        step can write it.
        """
        self._query([NODES], [("HSET", NODES, self._keys.node, line)])

    def heads(self, shards: Sequence[Shard]) -> Mapping[Shard, Head]:
        keys = [self._keys.shard(shard) for shard in shards]
        found = self._query(keys, [("HGETALL", key) for key in keys])
        return {shard: replies.head(flat, key) for shard, key, flat in zip(shards, keys, found, strict=True)}

    def alive(self) -> Mapping[str, str]:
        return {process: text(info) for process, info in self._processes() if info is not None}

    def renewals(self) -> Mapping[str, str]:
        flat = self._query([self._keys.meta], [("HGETALL", self._keys.meta)])[0]
        named = zip(flat[::2], flat[1::2], strict=True)
        found = {_process(name): text(counter) for name, counter in named if name.startswith(_PROCESS)}
        # A process of a release before the counters renews its key alone: the time of its expiry moves instead.
        former = [process for process, counter in found.items() if not counter]
        keys = [self._keys.alive(process) for process in former]
        expiries = self._query(keys, [("PEXPIRETIME", key) for key in keys]) if former else []
        moved = {process: f"expires {at}" for process, at in zip(former, expiries, strict=True) if at > 0}
        return found | moved

    def forget_dead(self) -> None:
        names = [text(name) for name in self._query([self._keys.meta], [("HKEYS", self._keys.meta)])[0]]
        listed = {name.partition(":")[2] for name in names if name.startswith(("process:", "member:"))}
        dead = [process for process, info in self._infos(sorted(listed)) if info is None]
        fields = [f"{part}:{process}" for process in dead for part in ("process", "member")]
        fields += [name for name in names if name.startswith("drain:") and name.partition(":")[2] not in listed]
        if fields:
            self._query([self._keys.meta], [("HDEL", self._keys.meta, *fields)])

    def _processes(self) -> list[tuple[str, bytes | None]]:
        """Return the processes named in the node's hash, each with the info of its lease; None if it has no lease."""
        names = self._query([self._keys.meta], [("HKEYS", self._keys.meta)])[0]
        return self._infos([_process(name) for name in names if name.startswith(_PROCESS)])

    def _infos(self, processes: Sequence[str]) -> list[tuple[str, bytes | None]]:
        if not processes:
            return []
        keys = [self._keys.alive(process) for process in processes]
        return list(zip(processes, self._query(keys, [("MGET", *keys)])[0], strict=True))

    def acquire(
        self,
        shard: Shard,
        expected_token: str,
        process: str,
        schema: int,
        *,
        proof: Proof = "released",
        counter: str = "",
    ) -> Acquired | NotFree:
        keys = (self._keys.shard(shard), self._keys.alive(owner_of(expected_token)), self._keys.meta)
        arguments = (expected_token, process, schema, proof, counter)
        word, *rest = self._function("acquire", keys, *arguments, version=2)
        if word == b"OK":
            return Acquired(head=replies.head(rest, keys[0]))
        reason: Any = text(rest[0])
        return NotFree(reason=reason, token=text(rest[1]))

    def unowned(self, shard: Shard, token: str) -> int | None:
        keys = (self._keys.shard(shard), self._keys.alive(owner_of(token)))
        word, answer = self._function("unowned", keys, token)
        return int(answer) if word == b"OK" else None

    # -- the step ------------------------------------------------------------------------------------------------

    def step(self, step: Step) -> Committed | Fenced | Conflict:
        return self._commits.commit(step)

    def count_attempts(self, shard: Shard, token: str, counts: Mapping[str, int]) -> Fenced | None:
        key = self._keys.shard(shard)
        commands = [("FCALL", "chronolet_try_1", 1, key, token, *one) for one in counts.items()]
        try:
            replies = self._query([key], commands)
        except StoreBroken as error:
            if not no_function(error):
                raise
            library.load(self._queries)
            replies = self._query([key], commands)
        answers = [_checked("try", reply) for reply in replies]
        return next((Fenced(token=text(reply[1])) for reply in answers if reply[0] == b"FENCED"), None)

    # -- reading -------------------------------------------------------------------------------------------------

    def read_log(self, after: Position, count: int, upto: Position | None = None) -> Sequence[Entry]:
        end = "+" if upto is None else str(upto)
        log = self._keys.log
        found = self._query([log], [("XRANGE", log, f"({after}", end, "COUNT", count)])[0]
        return list(replies.entries(found))

    def read_mail(self, shard: Shard, after: Position, count: int) -> Sequence[Mail]:
        mailbox = self._keys.mailbox(shard)
        found = self._query([mailbox], [("XRANGE", mailbox, f"({after}", "+", "COUNT", count)])[0]
        return list(replies.mails(found))

    def scan(self, after: Position, upto: Position | None = None) -> Iterator[Entry]:
        return scan.scan(self._address, self._keys.log, after, upto, timeout=self._scan_seconds)

    def last(self) -> Position:
        return position(self._stream(self._keys.log).get("last-generated-id", b"0-0"))

    def wait(
        self,
        log_after: Position | None,
        mail_after: Mapping[Shard, Position],
        count: int,
        block_milliseconds: int,
        *,
        members: bool = False,
    ) -> Inputs:
        try:
            return self._reader.wait(log_after, mail_after, count, block_milliseconds, members=members)
        except ResponseError as error:
            self._raise_refusal(error, [self._keys.log, *map(self._keys.mailbox, mail_after)])
        except ConnectionLost as error:
            raise translated(error, self._address.where) from error

    def wake(self) -> None:
        self._reader.wake()

    # -- commands ------------------------------------------------------------------------------------------------

    def send(
        self, shard: Shard, mail_type: str, entity: str, request: str, data: bytes, *, of: int = 0
    ) -> Literal["sent", "duplicate", "busy", "moved"]:
        keys = [self._keys.mailbox(shard), self._keys.shard(shard), self._keys.requests(shard)]
        mail = (mail_type, entity, request, data)
        if of:
            word = self._function("send", [*keys, self._keys.meta], *mail, shard.kind, of, version=2)[0]
        else:
            word = self._function("send", keys, *mail)[0]
        if word == b"BUSY":
            return "busy"
        if word == b"MOVED":
            return "moved"
        # After a lost reply the duplicate may be this call's own first attempt; either way it is stored once.
        return "duplicate" if word == b"DUPLICATE" else "sent"

    # -- snapshots, archive, trimming ----------------------------------------------------------------------------

    def snapshot(self, shard: Shard, token: str, snapshot: Snapshot) -> bool:
        keys = (self._keys.snapshot(shard), self._keys.shard(shard), self._keys.log)
        arguments = (token, str(snapshot.position), snapshot.format, snapshot.state)
        word, *rest = self._function("snapshot", keys, *arguments)
        # A repeat after a lost reply finds the position that its first attempt stored.
        repeated = word == b"STALE" and self._queries.resent and text(rest[0]) == str(snapshot.position)
        return bool(word == b"OK" or repeated)

    def read_snapshots(self, shards: Sequence[Shard]) -> Mapping[Shard, Snapshot]:
        keys = [self._keys.snapshot(shard) for shard in shards]
        found = self._query(keys, [("HMGET", key, "position", "format", "state") for key in keys])
        return {
            shard: Snapshot(position=position(at), format=int(form), state=state)
            for shard, (at, form, state) in zip(shards, found, strict=True)
            if at is not None and form is not None and state is not None and form.isdigit()
        }

    def archived(self) -> tuple[Position, Position]:
        meta = self._keys.meta
        upto, trimmed = self._query([meta], [("HMGET", meta, "archived", "trimmed")])[0]
        return position(upto or b"0-0"), position(trimmed or b"0-0")

    def mark_archived(self, keeper: Shard, token: str, upto: Position) -> bool:
        word, *_ = self._function("archived", (self._keys.meta, self._keys.shard(keeper)), token, str(upto))
        return bool(word == b"OK")

    def trim(self, keeper: Shard, token: str, upto: Position, holding: Sequence[Shard]) -> int | Fenced:
        held = [key for shard in holding for key in (self._keys.shard(shard), self._keys.snapshot(shard))]
        keys = (self._keys.meta, self._keys.log, self._keys.shard(keeper), *held)
        total = 0
        while True:
            word, *rest = self._function("trim", keys, token, str(upto))
            if word == b"FENCED":
                return Fenced(token=text(rest[0]))
            if not rest[0]:
                return total
            total += int(rest[0])

    def sizes(self) -> Mapping[str, int]:
        log, dead = self._keys.log, self._keys.dead
        entries, dead_letters, size = self._query(
            [log, dead, log], [("XLEN", log), ("XLEN", dead), ("MEMORY", "USAGE", log)]
        )
        stream = self._stream(log)
        first = stream.get("first-entry")
        return {
            "entries": entries,
            "dead": dead_letters,
            "bytes": size or 0,
            "first_milliseconds": position(first[0]).milliseconds if first else 0,
            "last_milliseconds": position(stream.get("last-generated-id", b"0-0")).milliseconds,
        }

    def close(self) -> None:
        self._commits.close()
        for channel in (self._steps, self._lease, self._queries):
            channel.disconnect()
        self._reader.close()

    # -- within --------------------------------------------------------------------------------------------------

    def _function(
        self,
        name: str,
        keys: Sequence[str],
        *arguments: str | bytes | int,
        channel: Channel | None = None,
        version: int = 1,
    ) -> list[Any]:
        """Call a library function, loading the library if it is missing. Raises StoreBroken if the function refuses."""
        chosen = channel or self._queries
        command = ("FCALL", f"chronolet_{name}_{version}", len(keys), *keys, *arguments)
        try:
            reply: list[Any] = chosen.call(*command)
        except ResponseError as error:
            if not no_function(error):
                raise translated(error, chosen.where) from error
            library.load(self._queries)
            reply = chosen.call(*command)
        return _checked(name, reply)

    def _query(self, keys: Sequence[str], commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        """Send plain commands in one round trip. If a key has the wrong type, the error names `keys`."""
        try:
            return self._queries.calls(commands)
        except ResponseError as error:
            self._raise_refusal(error, keys)

    def _stream(self, key: str) -> dict[str, Any]:
        """Return the reply to XINFO STREAM as a map; empty if the stream does not exist."""
        try:
            flat = self._queries.call("XINFO", "STREAM", key)
        except ResponseError as error:
            if "no such key" in str(error):
                return {}
            self._raise_refusal(error, [key])
        return {text(name): value for name, value in zip(flat[::2], flat[1::2], strict=True)}

    def _raise_refusal(self, error: ResponseError, keys: Sequence[str]) -> NoReturn:
        """Raise the kernel's exception for an error reply. If a key has the wrong type, the exception's text names
        `keys` and their types.
        """
        if "WRONGTYPE" in str(error):
            types = self._queries.calls([("TYPE", key) for key in keys])
            found = ", ".join(f"{key} is a {text(kind)}" for key, kind in zip(keys, types, strict=True))
            raise StoreBroken(f"a key has the wrong type: {found}") from error
        raise translated(error, self._address.where) from error


def _process(field: bytes) -> str:
    return text(field.removeprefix(_PROCESS))


def _checked(name: str, reply: list[Any]) -> list[Any]:
    """Return a function's reply. Raises StoreBroken if the function refused."""
    if reply[0] == b"BROKEN":
        raise StoreBroken(f"{name} was refused and nothing was written: {text(reply[1])}")
    return reply
