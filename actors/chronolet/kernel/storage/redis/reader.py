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
_BEGINNING = "0-0"


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
        self._members_seen = _BEGINNING
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
        streams: dict[str, Position | str] = {} if log_after is None else {self._keys.log: log_after}
        streams |= {self._keys.mailbox(shard): at for shard, at in mail_after.items()}
        names = {self._keys.mailbox(shard).encode(): shard for shard in mail_after}
        self._waiting.set()
        try:
            if self._woken.is_set():
                return Inputs(log=(), mail={})
            self._learn_client_id()
            seen = {self._keys.membership: self._members_seen} if members else {}
            try:
                reply = self._read(streams | seen, count, block_milliseconds)
            except ResponseError as error:
                if not members or "WRONGTYPE" not in str(error):
                    raise
                # Perhaps only the members' stream is broken, which is read only to save time.
                reply = self._read(streams, count, block_milliseconds)
            return self._inputs(reply, names)
        finally:
            # In this order, so that a `wake` in between applies to the next wait.
            self._woken.clear()
            self._waiting.clear()

    def _read(self, streams: Mapping[str, Position | str], count: int, block_milliseconds: int) -> Any:
        """Return the reply to one XREAD of these streams, each after a position."""
        if not streams:  # XREAD needs one
            self._woken.wait(block_milliseconds / 1000)
            return None
        # BLOCK 0 would block indefinitely.
        block = ("BLOCK", block_milliseconds) if block_milliseconds > 0 else ()
        after = (str(position) for position in streams.values())
        call = self._channel.pack("XREAD", "COUNT", count, *block, "STREAMS", *streams, *after)
        return self._channel.exchange(call, 1, timeout=block_milliseconds / 1000 + self._margin_seconds)[0]

    def _learn_client_id(self) -> None:
        """Request this connection's client id, which `wake` needs, once per connection."""
        if not self._channel.connected:
            self._client_id, self._members_seen = None, _BEGINNING  # it may be another server
            self._client_id = int(self._channel.exchange(self._channel.pack("CLIENT", "ID"), 1)[0])

    def _inputs(self, reply: Any, names: Mapping[bytes, Shard]) -> Inputs:
        log: list[Any] = []
        mail, changed = {}, False
        for name, found in reply or ():
            if name in names:
                mail[names[name]] = list(replies.mails(found))
            elif name == self._keys.log.encode():
                log = list(replies.entries(found))
            else:
                changed, self._members_seen = True, replies.text(found[-1][0])
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
