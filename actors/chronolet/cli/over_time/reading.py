"""Reads what happened between two moments, for the modules that follow one subject over time.

Input: a session, two moments, kinds. Output: each entry of these kinds, decoded, and the states after it. Next:
`device_tenures`, `image_uses`, `node_conditions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from chronolet.cli.session import Session
from chronolet.history.state import Folding
from chronolet.history.when import Located
from chronolet_schemas import codec
from chronolet_schemas.envelope import Entry, Event
from chronolet_schemas.times import time_of


class Turn(NamedTuple):
    """One entry, and when it was written, in milliseconds since the epoch."""

    entry: Entry
    at: int

    def event(self) -> Event | None:
        """Decode the event; None if this release cannot do so, or another program has written the entry."""
        try:
            return codec.decode(self.entry.type, self.entry.data, Event)
        except codec.Undecodable:
            return None


def turns(
    node: Session, folding: Folding, first: Located, last: Located, kinds: Collection[str] = ()
) -> Iterator[Turn]:
    """Yield the entries between the moments whose entities are of these kinds (none: all entries), after folding them.

    `folding` is at the first moment. At the end, undecodable entries are added to those that the session reports.
    """
    node.at = last
    for entry in node.entries(first.position):
        if not kinds or entry.entity.partition("/")[0] in kinds:
            folding.read((entry,))
            yield Turn(entry, time_of(entry))
    node.unreadable.update(folding.unreadable)
