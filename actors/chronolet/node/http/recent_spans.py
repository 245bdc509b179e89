"""Stores the most recent spans of this process, and shows them on a page: /trace?entity=default/web.

Input: spans, from any thread. Output: JSON, oldest first, unfinished ones last. Next: `chronolet trace`.
"""

from __future__ import annotations

from collections import deque

import msgspec

from chronolet.node.http.server import Query, Response
from chronolet.ports.spans import Span

MOST = 5_000
"""Maximum number of stored spans, of all entities together. A span takes about 300 bytes, and a pod's start has about
ten spans, so these cover the last 500 starts.
"""


class RecentSpans:
    """Implements `ports.spans.Spans` with a ring buffer of finished spans, and the unfinished ones: at most one per
    pending effect.
    """

    def __init__(self, most: int = MOST) -> None:
        self._spans: deque[Span] = deque(maxlen=most)
        self._open: dict[tuple[str, str, str], Span] = {}

    def begin(self, span: Span) -> None:
        """See `Spans`."""
        self._open[_key(span)] = span

    def note(self, span: Span) -> None:
        """See `Spans`. If `span` has no queue, it gets the one recorded when it began."""
        begun = self._open.pop(_key(span), None)
        if begun is not None and span.queue is None:
            span = msgspec.structs.replace(span, queue=begun.queue)
        self._spans.append(span)

    def of(self, entity: str) -> list[Span]:
        """Return the spans of one entity, or of all entities if `entity` is empty."""
        found = (*self._spans.copy(), *tuple(self._open.values()))
        return [one for one in found if not entity or one.entity == entity]

    def page(self, query: Query) -> Response:
        """Render the page /trace."""
        found = self.of(query.get("entity", [""])[0])
        return Response(200, msgspec.json.encode(found), "application/json")


def _key(span: Span) -> tuple[str, str, str]:
    return span.entity, span.cause, span.what
