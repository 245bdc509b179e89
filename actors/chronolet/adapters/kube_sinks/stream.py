"""KubeEvents in the node's Redis: the stream that `get events` reads, and its reader.

Input: posts. Output: one stream entry per post. The entry's id is the post's position in the node's log, so that a
second attempt to add it is detected. Old entries are trimmed by age and number. Next: the CLI, redis-cli.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.kernel.storage.redis.errors import ResponseError
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet.ports.kube_sinks import LOCAL_BATCHES, Outcome, api_event
from chronolet_schemas.envelope import Position
from chronolet_schemas.keys import Keys
from chronolet_schemas.kube_events import Post

_LONGEST_BLOCK = 5_000
_KNOWN = "equal or smaller"
"""Part of the server's error for an id that is not the highest. Since ids arrive in order, the stream already has that
entry.
"""


class StreamSink:
    """Implements `ports.kube_sinks.Sink` with the stream `chronolet:{NODE}:kube_events`.

    Each entry is a complete Event object as it was at that position; among entries with the same name, the last one is
    current. When new entries arrive, the stream is trimmed to entries younger than `keep_milliseconds`, and to the
    newest `length` of them.
    """

    batch_size = LOCAL_BATCHES["redis"]

    def __init__(
        self, url: str, node: str, *, keep_milliseconds: int, length: int, timeout_seconds: float = 10.0
    ) -> None:
        self._channel = Channel(Address(url), timeout_seconds)
        self._node = node
        self._key = Keys(node).kube_events
        self._keep = keep_milliseconds
        self._length = length

    def deliver(self, posts: Sequence[Post]) -> Outcome:
        try:
            try:
                self._channel.calls([self._added(post) for post in posts])
            except ResponseError as error:
                if _KNOWN not in str(error):
                    raise
                self._add_one_by_one(posts)
            oldest = max(0, time.time_ns() // 1_000_000 - self._keep)
            self._channel.calls([("XTRIM", self._key, "MINID", oldest), ("XTRIM", self._key, "MAXLEN", self._length)])
        except (ResponseError, StoreUnreachable, StoreBroken) as error:
            return Outcome(failure=str(error))
        return Outcome(delivered=len(posts))

    def _add_one_by_one(self, posts: Sequence[Post]) -> None:
        """Add posts one by one, skipping those already in the stream. Raises ResponseError for any other error."""
        for post in posts:
            try:
                self._channel.call(*self._added(post))
            except ResponseError as error:
                if _KNOWN not in str(error):
                    raise

    def _added(self, post: Post) -> tuple[str | bytes, ...]:
        event = msgspec.json.encode(api_event(post, self._node))
        about = f"{post.object_kind}/{post.object_name}"
        shown = ("type", post.severity, "reason", post.reason, "object", about, "count", str(post.count))
        return ("XADD", self._key, post.at, *shown, "event", event)


class StreamReader:
    """Implements `ports.kube_sinks.Kept`: reads the stream that `StreamSink` writes."""

    def __init__(self, url: str, node: str, *, timeout_seconds: float = 10.0) -> None:
        self._channel = Channel(Address(url), timeout_seconds)
        self._key = Keys(node).kube_events

    def read(
        self, after: Position, count: int, block_milliseconds: int = 0
    ) -> Sequence[tuple[Position, dict[str, Any]]]:
        block = ("BLOCK", min(block_milliseconds, _LONGEST_BLOCK)) if block_milliseconds else ()
        try:
            found = self._channel.call("XREAD", "COUNT", count, *block, "STREAMS", self._key, str(after))
        except ResponseError as error:
            raise StoreBroken(f"{self._key}: {error}") from error
        return [_entry(*one) for _, entries in found or () for one in entries]

    def close(self) -> None:
        self._channel.disconnect()


def _entry(at: bytes, fields: list[bytes]) -> tuple[Position, dict[str, Any]]:
    values = dict(zip(fields[::2], fields[1::2], strict=True))
    try:
        event = msgspec.json.decode(values.get(b"event", b""), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise StoreBroken(f"entry {at.decode()} of the KubeEvents stream holds no Event object: {error}") from error
    return Position.parse(at.decode()), event
