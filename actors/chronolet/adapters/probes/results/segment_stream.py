"""The stream of segments in Redis: reading and trimming.

Input: a server's URL, a node. Output: a `SegmentStream`. Next: `keeper`; `cli.over_time`. `segment_writer` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.kernel.storage.redis.errors import ResponseError
from chronolet.kernel.storage.store import StoreBroken
from chronolet.ports.pods.probe_segments import SegmentEntry
from chronolet_schemas.envelope import START, Position
from chronolet_schemas.keys import Keys

_PAGE_SIZE = 50
_TIMEOUT_SECONDS = 5.0
_MOST_DIGITS = 10


class RedisSegments:
    """Implements `SegmentStream`. The connection is opened at the first use."""

    def __init__(self, url: str, node: str, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self._channel = Channel(Address(url), timeout_seconds)
        self._key = Keys(node).probe_segments

    def entries(self, after: Position = START, upto: Position | None = None) -> Iterator[SegmentEntry]:
        """See `SegmentStream`."""
        end = "+" if upto is None else str(upto)
        while found := self._call("XRANGE", self._key, f"({after}", end, "COUNT", _PAGE_SIZE):
            for entry_id, fields in found:
                after = Position.parse(entry_id.decode())
                yield _entry(after, fields)

    def trim(self, upto: Position) -> int:
        """See `SegmentStream`."""
        removed: int = self._call("XTRIM", self._key, "MINID", str(Position(upto.milliseconds, upto.n + 1)))
        return removed

    def close(self) -> None:
        """Close the connection."""
        self._channel.disconnect()

    def _call(self, *command: str | int) -> Any:
        try:
            return self._channel.call(*command)
        except ResponseError as error:
            raise StoreBroken(f"{self._channel.where}: {self._key}: {error}") from error


def _entry(entry_id: Position, fields: Sequence[bytes]) -> SegmentEntry:
    named = dict(zip(fields[::2], fields[1::2], strict=True))
    outcomes = named.get(b"outcomes", b"")
    # Another program may have added anything: int() refuses thousands of digits.
    count = int(outcomes) if outcomes.isdigit() and len(outcomes) < _MOST_DIGITS else 0
    return SegmentEntry(entry_id, count, named.get(b"data", b""))
