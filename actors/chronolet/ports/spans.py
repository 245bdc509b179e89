"""How long single calls and waits of effects took, for whoever asks why something was slow.

Comes in: nothing. Goes out: `Span`, and the Protocol that takes spans. Next: `fenced` and the kernel's observer note
them, `node.recent_spans` keeps the newest, `history.start_trace` puts them beside the log.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

TURN = "turn"
"""The wait of an effect for its turn among the others of its lane."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """`what` (`docker.create`, `turn`) took so many milliseconds, from `at` (since the epoch) on.

    `entity` (`default/web`) has asked for it by the log entry at the position `cause`.
    """

    entity: str
    cause: str
    what: str
    at: int
    milliseconds: float


class Spans(Protocol):
    """Called on any thread; returns at once and does not raise."""

    def note(self, span: Span) -> None:
        """One span that is over."""


class NoSpans:
    """Nobody asks."""

    def note(self, span: Span) -> None:
        """Nothing."""
