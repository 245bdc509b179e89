"""How long single calls and waits of effects took, for whoever asks why something was slow.

Comes in: nothing. Goes out: `Span`, and the Protocol that takes spans. Next: `fenced`, `pod.pulling` and the kernel's
observer note them, `node.recent_spans` keeps the newest, `history.start_trace` puts them beside the log.
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
"""The wait of an effect for its turn among the others of its lane."""
PULL_TURN = "turn to pull"
"""The wait of a pull for its turn among the node's other pulls."""


class Span(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`what` (`docker.create`, `turn`) took so many milliseconds, from `at` (since the epoch) on.

    `entity` (`default/web`) has asked for it by the log entry at the position `cause`. `over` is False while it goes
    on; `queue` is what a turn was waited for behind.
    """

    entity: str
    cause: str
    what: str
    at: int
    milliseconds: float = 0.0
    over: bool = True
    queue: Queue | None = None

    def took(self, now: int) -> float:
        """Its milliseconds, so far if it goes on."""
        return self.milliseconds if self.over else max(now - self.at, 0)


class Spans(Protocol):
    """Called on any thread; returns at once and does not raise."""

    def begin(self, span: Span) -> None:
        """One span that goes on, until one of the same entity, cause and name is noted."""

    def note(self, span: Span) -> None:
        """One span that is over."""


class NoSpans:
    """Nobody asks."""

    def begin(self, span: Span) -> None:
        """Nothing."""

    def note(self, span: Span) -> None:
        """Nothing."""


@contextmanager
def measured(spans: Spans, context: EffectContext, what: str, queue: Queue | None = None) -> Iterator[None]:
    """A span of the effect for the length of the block, however that ends."""
    at, began = time.time_ns() // 1_000_000, time.monotonic()
    span = Span(entity=context.entity, cause=context.cause, what=what, at=at, over=False, queue=queue)
    spans.begin(span)
    try:
        yield
    finally:
        took = (time.monotonic() - began) * 1000
        spans.note(msgspec.structs.replace(span, over=True, milliseconds=took))
