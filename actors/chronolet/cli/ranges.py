"""Finds the two moments of a command about a range of the past: `--from` and `--to`.

Input: a session, the two flags. Output: the moments. Next: `timeline` and `history`.
"""

from __future__ import annotations

from chronolet.cli.errors import Failure
from chronolet.cli.session import Session
from chronolet.history.when import Located
from chronolet_schemas.times import time_of

DEFAULT_MILLISECONDS = 3_600_000
"""How long before its end a range begins by default: an hour."""


def between(node: Session, begin: str | None, end: str | None) -> tuple[Located, Located]:
    """Return the moments of `--from` and `--to`. Without `--to`, the range ends now; without `--from`, it begins an
    hour earlier, or where the history begins. Afterwards, the session's moment is the beginning.

    Raises Failure, which names the flag, if there is no such moment or the end precedes the beginning.
    """
    last = node.go_to_now() if end is None else node.go_to(end, "--to")
    first = _default(node, last) if begin is None else node.go_to(begin, "--from")
    if first.position > last.position:
        raise Failure(f"--from: found {begin}, expected a moment before --to")
    node.at = first
    return first, last


def _default(node: Session, last: Located) -> Located:
    """Return the moment an hour before `last`; if the history begins later, the moment before its first entry."""
    try:
        return node.go_to(f"@{(last.milliseconds - DEFAULT_MILLISECONDS) / 1000:.3f}", "--from")
    except Failure:
        node.at = None
        oldest = next(node.entries(), None)
        return Located(node.beginning(), last.milliseconds if oldest is None else time_of(oldest))
