"""Scans the log quickly: on a separate connection, in small pages, each requested before the previous one is used.

Input: positions. Output: entries, oldest first. The server prepares the next page while Python folds the current one.
If a page is larger than the socket's buffer, the server has to wait for its reader, so pages are small (measured
against redis-py with pages of 1,000 entries: twice as fast with pages of 100 to 200, one and a half times as fast with
pages of 500 or more). Next: recovery.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chronolet.kernel.storage.redis import replies
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.kernel.storage.redis.errors import ConnectionLost, ResponseError, translated
from chronolet.kernel.storage.store import StoreBroken
from chronolet_schemas.envelope import Entry, Position

PAGE = 150


def scan(address: Address, log: str, after: Position, upto: Position | None, *, timeout: float) -> Iterator[Entry]:
    """Yield the entries after `after` up to `upto` (None: the newest), oldest first. `timeout`: seconds for each page.
    Raises StoreUnreachable, and StoreBroken if the log is unreadable.
    """
    channel = Channel(address, timeout)
    end = "+" if upto is None else str(upto)
    try:
        _request(channel, log, str(after), end)
        while page := _page(channel):
            more = len(page) == PAGE
            if more:
                _request(channel, log, replies.text(page[-1][0]), end)
            yield from replies.entries(page)
            if not more:
                return
    except ConnectionLost as error:
        raise translated(error, address.where) from error
    except ResponseError as error:
        raise StoreBroken(f"{log} cannot be read: {error}") from error
    finally:
        channel.disconnect()


def _request(channel: Channel, log: str, after: str, end: str) -> None:
    channel.send(channel.pack("XRANGE", log, f"({after}", end, "COUNT", PAGE))


def _page(channel: Channel) -> list[Any]:
    reply: list[Any] = channel.read(1)[0]
    return reply
