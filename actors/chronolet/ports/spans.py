"""Spans: how long single calls and waits of effects took, to show why something was slow.

Output: `Span`, and the Protocol of their recorders. Next: `fenced`, `pod.workers.images.pulling` and the kernel's
observer record spans, `node.http.recent_spans` keeps the newest, `history.start_trace` combines them with the log.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import msgspec

from chronolet.kernel.kind import EffectContext
from chronolet.kernel.observer import Queue

TURN = "turn"
"""An effect's wait in the queue of its lane."""
PULL_TURN = "turn to pull"
"""A pull's wait in the queue of the node's pulls."""


class Span(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call or wait, named `what` (`docker.create`, `turn`). `at`: its start, in milliseconds since the epoch.

    `entity` (`default/web`) requested it by the log entry at the position `cause`. `over` is False while it is in
    progress. `queue`: what a wait was queued behind.
    """

    entity: str
    cause: str
    what: str
    at: int
    milliseconds: float = 0.0
    over: bool = True
    queue: Queue | None = None

    def took(self, now: int) -> float:
        """Its duration in milliseconds; the time until `now` while it is in progress."""
        return self.milliseconds if self.over else max(now - self.at, 0)


class Spans(Protocol):
    """A recorder of spans. Thread-safe; does not block or raise."""

    def begin(self, span: Span) -> None:
        """Record a span in progress, until `note` gets one of the same entity, cause and name."""

    def note(self, span: Span) -> None:
        """Record a finished span."""


class NoSpans:
    """Discards all spans."""

    def begin(self, span: Span) -> None:
        """Discard it."""

    def note(self, span: Span) -> None:
        """Discard it."""


@contextmanager
def measured(spans: Spans, context: EffectContext, what: str, queue: Queue | None = None) -> Iterator[None]:
    """Record the block as a span of the effect, even if it raises."""
    at, began = time.time_ns() // 1_000_000, time.monotonic()
    span = Span(entity=context.entity, cause=context.cause, what=what, at=at, over=False, queue=queue)
    spans.begin(span)
    try:
        yield
    finally:
        took = (time.monotonic() - began) * 1000
        spans.note(msgspec.structs.replace(span, over=True, milliseconds=took))
