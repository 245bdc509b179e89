"""The port to the stream of segments, in which the raw outcomes of probes are until they are archived.

Input: none. Output: the Protocol `SegmentStream`. Next: `keeper`, which archives and trims the stream; `history`, which
reads it; `adapters.probes.results.segment_stream`, which implements it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from chronolet_schemas.envelope import START, Position


class SegmentEntry(NamedTuple):
    """An entry of the stream: its id, the number of outcomes, and the encoded segment.

    `data` is empty for an entry that another program has added.
    """

    id: Position
    outcomes: int
    data: bytes


class SegmentStream(Protocol):
    """The node's stream of segments. If a method fails, it raises StoreUnreachable or StoreBroken."""

    def entries(self, after: Position = START, upto: Position | None = None) -> Iterator[SegmentEntry]:
        """Yield the entries after an id, and up to another one, oldest first, read page by page."""

    def trim(self, upto: Position) -> int:
        """Remove the entries up to an id; return how many there were."""
