"""KubeEvents correlated for one reader. Pure.

Comes in: `Recorded` of the log, of all objects or of some: what the correlator makes of one object hangs on no other,
but for the bounds of its caches. Goes out: Event objects as they are now. Next: the CLI.
"""

from __future__ import annotations

from collections.abc import Iterable

from chronolet.kube_events.correlator import Correlation
from chronolet.kube_events.policy import Options
from chronolet.kube_events.state import Cache, Caches
from chronolet_schemas.envelope import Position
from chronolet_schemas.kube_events import Post, Recorded

_ENDLESS = 1 << 40


class View:
    """What a reader has, one event after the other: as the sinks have it, or `whole`, with nothing kept back and only
    what is alike in every word made one.
    """

    def __init__(self, *, whole: bool = False) -> None:
        options = Options(burst=_ENDLESS, max_events=_ENDLESS) if whole else Options()
        caches = Caches(known=Cache(size=_ENDLESS)) if whole else Caches()
        self._work = Correlation(caches, options)
        self._posts: dict[str, Post] = {}

    def take(self, at: Position, event: Recorded) -> Post | None:
        """What the reader is told because of this event."""
        post = self._work.take(at, event)
        if post is not None:
            self._posts.pop(post.name, None)
            self._posts[post.name] = post
        return post

    def posts(self) -> tuple[Post, ...]:
        """Every Event object once, in the order in which they happened last."""
        return tuple(self._posts.values())


def correlated(events: Iterable[tuple[Position, Recorded]]) -> tuple[Post, ...]:
    """What the sinks have of these events."""
    view = View()
    for at, event in events:
        view.take(at, event)
    return view.posts()
