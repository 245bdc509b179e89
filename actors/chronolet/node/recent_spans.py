"""The newest spans of this process, and the page that shows them: /trace?entity=default/web.

Comes in: spans, from any thread. Goes out: JSON, oldest first. Next: `chronolet trace`.
"""

from __future__ import annotations

from collections import deque

import msgspec

from chronolet.node.http import Answer, Query
from chronolet.ports.spans import Span

MOST = 5_000
"""Of all entities: some 300 bytes each. A start has about ten, so this is the last 500 starts."""


class RecentSpans:
    """`ports.spans.Spans`: a ring buffer."""

    def __init__(self, most: int = MOST) -> None:
        self._spans: deque[Span] = deque(maxlen=most)

    def note(self, span: Span) -> None:
        """See `Spans`."""
        self._spans.append(span)

    def of(self, entity: str) -> list[Span]:
        """Those of one entity, of all where it is empty."""
        return [one for one in self._spans.copy() if not entity or one.entity == entity]

    def page(self, query: Query) -> Answer:
        """/trace."""
        found = self.of(query.get("entity", [""])[0])
        return Answer(200, msgspec.json.encode(found), "application/json")
