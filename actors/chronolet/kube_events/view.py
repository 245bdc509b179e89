"""Correlate KubeEvents for one reader. Pure.

Input: `Recorded` events from the log, about all objects or only some: objects are correlated independently, apart from
the size limits of the caches. Output: the current Event objects. Next: the CLI.
"""

from __future__ import annotations

from collections.abc import Iterable

from chronolet.kube_events.correlator import Correlation
from chronolet.kube_events.policy import Options
from chronolet.kube_events.state import Cache, Caches
from chronolet_schemas.kube_events import Post, Recorded
from chronolet_schemas.times import Stamp

_ENDLESS = 1 << 40


class View:
    """A reader's view, built one event at a time. By default it shows what sinks get; if `whole`, it suppresses no
    event and merges only identical ones.
    """

    def __init__(self, *, whole: bool = False) -> None:
        options = Options(burst=_ENDLESS, max_events=_ENDLESS) if whole else Options()
        caches = Caches(known=Cache(size=_ENDLESS)) if whole else Caches()
        self._work = Correlation(caches, options)
        self._posts: dict[str, Post] = {}

    def take(self, at: Stamp, event: Recorded) -> Post | None:
        """Return the post that results from this event; None if it is suppressed."""
        post = self._work.take(at, event)
        if post is not None:
            self._posts.pop(post.name, None)
            self._posts[post.name] = post
        return post

    def posts(self) -> tuple[Post, ...]:
        """Return every Event object once, ordered by its last occurrence."""
        return tuple(self._posts.values())


def correlated(events: Iterable[tuple[Stamp, Recorded]]) -> tuple[Post, ...]:
    """Correlate these KubeEvents and return the posts that sinks get for them, only the latest of each name."""
    view = View()
    for at, event in events:
        view.take(at, event)
    return view.posts()
