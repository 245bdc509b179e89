"""The blocking read over the log and all mailboxes of a process, on its own connection, and how to end it early.

Comes in: positions to read after. Goes out: `Inputs`. One XREAD BLOCK over few streams: a process has one mailbox for
each of its shards (waking up costs the server under a microsecond a stream). Next: `redis_store.wait`, the process's
one reader.
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

_MARGIN_SECONDS = 5.0
_WAKE_TRIES = 200


class Reader:
    """`wait` is for one thread; `wake` for any."""

    def __init__(self, address: Address, keys: Keys, queries: Channel) -> None:
        self._keys = keys
        self._queries = queries
        self._channel = Channel(address, _MARGIN_SECONDS)
        self._client_id: int | None = None
        self._woken = threading.Event()
        self._waiting = threading.Event()

    def wait(
        self, log_after: Position, mail_after: Mapping[Shard, Position], count: int, block_milliseconds: int
    ) -> Inputs:
        """Raises errors of `redis_errors`; the connection is opened anew by the next call."""
        names = {self._keys.log.encode(): None} | {self._keys.mailbox(s).encode(): s for s in mail_after}
        after = [str(log_after), *(str(at) for at in mail_after.values())]
        # BLOCK 0 would wait for ever.
        block = ("BLOCK", block_milliseconds) if block_milliseconds > 0 else ()
        call = self._channel.pack("XREAD", "COUNT", count, *block, "STREAMS", *names, *after)
        self._waiting.set()
        try:
            if self._woken.is_set():
                return Inputs(log=(), mail={})
            self._know_oneself()
            timeout = block_milliseconds / 1000 + _MARGIN_SECONDS
            return self._inputs(self._channel.exchange(call, 1, timeout=timeout)[0], names)
        finally:
            # In this order: a `wake` in between is then kept for the next wait.
            self._woken.clear()
            self._waiting.clear()

    def _know_oneself(self) -> None:
        """Learn this connection's client id, for `wake`."""
        if not self._channel.connected:
            self._client_id = None
            self._client_id = int(self._channel.exchange(self._channel.pack("CLIENT", "ID"), 1)[0])

    @staticmethod
    def _inputs(reply: Any, names: Mapping[bytes, Shard | None]) -> Inputs:
        log: list[Any] = []
        mail = {}
        for name, found in reply or ():
            shard = names[name]
            if shard is None:
                log = list(replies.entries(found))
            else:
                mail[shard] = list(replies.mails(found))
        return Inputs(log=log, mail=mail)

    def wake(self) -> None:
        """End a wait that is under way, or is about to begin: its caller may have looked at its own affairs before."""
        self._woken.set()
        if not self._waiting.is_set():
            return  # whoever waits next looks at the flag first
        for _ in range(_WAKE_TRIES):
            if not self._woken.is_set() or self._unblocked():
                return
            # The reader is between its look at the flag and the server's blocking it.
            time.sleep(0.001)

    def _unblocked(self) -> bool:
        if self._client_id is None:
            return False
        try:
            return bool(self._queries.call("CLIENT", "UNBLOCK", self._client_id))
        except (ResponseError, StoreUnreachable, StoreBroken):
            return True  # nothing to be done: the block time ends the wait

    def close(self) -> None:
        self._channel.disconnect()
