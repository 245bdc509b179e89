"""Reads the log, all mailboxes of a process, and whether the node's members have changed, in one blocking call on a
separate connection. Another thread can end the call early.

Input: positions to read after. Output: `Inputs`. One XREAD BLOCK covers few streams: the log, one mailbox per shard of
the process, and the members' stream (a wake-up costs the server less than a microsecond per stream). Next:
`store.wait`, called by the process's one reader.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from chronolet.kernel.storage.redis import replies
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.kernel.storage.redis.errors import ResponseError
from chronolet.kernel.storage.store import Inputs, StoreBroken, StoreUnreachable
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Keys, Shard

_WAKE_ATTEMPTS = 200
_LOG, _MEMBERS = "log", "members"


class Reader:
    """A blocking reader: only one thread may call `wait`, any thread may call `wake`.

    `margin_seconds`: how long a read may take in addition to its blocking time.
    """

    def __init__(self, address: Address, keys: Keys, queries: Channel, *, margin_seconds: float) -> None:
        self._keys = keys
        self._queries = queries
        self._margin_seconds = margin_seconds
        self._channel = Channel(address, margin_seconds)
        self._client_id: int | None = None
        self._woken = threading.Event()
        self._waiting = threading.Event()
        self._members_seen = b"0-0"
        """The id of the last entry of the members' stream that was read. The first read returns at once."""

    def wait(
        self,
        log_after: Position | None,
        mail_after: Mapping[Shard, Position],
        count: int,
        block_milliseconds: int,
        *,
        members: bool = False,
    ) -> Inputs:
        """See `Store.wait`. Raises RedisError; after a ConnectionLost, the next call opens a new connection."""
        if members:
            try:
                return self._wait(log_after, mail_after, count, block_milliseconds, members=True)
            except ResponseError as error:
                if "WRONGTYPE" not in str(error):
                    raise
                # If only the members' stream is broken, the others can be read.
        return self._wait(log_after, mail_after, count, block_milliseconds, members=False)

    def _wait(
        self,
        log_after: Position | None,
        mail_after: Mapping[Shard, Position],
        count: int,
        block_milliseconds: int,
        *,
        members: bool,
    ) -> Inputs:
        names: dict[bytes, Shard | str] = {self._keys.mailbox(shard).encode(): shard for shard in mail_after}
        after: list[str | bytes] = [str(at) for at in mail_after.values()]
        if log_after is not None:
            names[self._keys.log.encode()] = _LOG
            after.append(str(log_after))
        if members:
            names[self._keys.membership.encode()] = _MEMBERS
            after.append(self._members_seen)
        # BLOCK 0 would block indefinitely.
        block = ("BLOCK", block_milliseconds) if block_milliseconds > 0 else ()
        call = self._channel.pack("XREAD", "COUNT", count, *block, "STREAMS", *names, *after)
        self._waiting.set()
        try:
            if self._woken.is_set():
                return Inputs(log=(), mail={})
            self._learn_client_id()
            timeout = block_milliseconds / 1000 + self._margin_seconds
            return self._inputs(self._channel.exchange(call, 1, timeout=timeout)[0], names)
        finally:
            # In this order, so that a `wake` in between applies to the next wait.
            self._woken.clear()
            self._waiting.clear()

    def _learn_client_id(self) -> None:
        """Request this connection's client id, which `wake` needs, once per connection."""
        if not self._channel.connected:
            self._client_id = None
            self._client_id = int(self._channel.exchange(self._channel.pack("CLIENT", "ID"), 1)[0])

    def _inputs(self, reply: Any, names: Mapping[bytes, Shard | str]) -> Inputs:
        log: list[Any] = []
        mail, changed = {}, False
        for name, found in reply or ():
            what = names[name]
            if isinstance(what, Shard):
                mail[what] = list(replies.mails(found))
            elif what == _LOG:
                log = list(replies.entries(found))
            else:
                changed, self._members_seen = True, found[-1][0]
        return Inputs(log=log, mail=mail, members_changed=changed)

    def wake(self) -> None:
        """End the current wait, or one that is about to begin: its caller may already have checked for other work."""
        self._woken.set()
        if not self._waiting.is_set():
            return  # the next wait checks the flag first
        for _ in range(_WAKE_ATTEMPTS):
            if not self._woken.is_set() or self._unblocked():
                return
            # The reader has checked the flag, but the server is not blocking it yet.
            time.sleep(0.001)

    def _unblocked(self) -> bool:
        if self._client_id is None:
            return False
        try:
            return bool(self._queries.call("CLIENT", "UNBLOCK", self._client_id))
        except (ResponseError, StoreUnreachable, StoreBroken):
            return True  # cannot wake it: the wait ends by its time-out

    def close(self) -> None:
        self._channel.disconnect()
