"""Fold the events of the `kube_events` kind into State. Pure.

Input: State, an event from the log. Output: the next State. Next: `decider`, history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from chronolet.kube_events.recent import remembered
from chronolet.kube_events.state import Caches, Sink, State
from chronolet_schemas import kube_events
from chronolet_schemas.envelope import Event


def evolve(state: State, event: Event) -> State:
    """Return the state after one event; events of other kinds change nothing."""
    match event:
        case kube_events.Correlated():
            return _correlated(state, event)
        case kube_events.SinksChanged():
            sinks = {name: state.sinks.get(name) or Sink(cursor=state.head) for name in event.sinks}
            return _without(replace(state, sinks=sinks), list(state.posts))
        case kube_events.SinkEvent() if event.sink in state.sinks:
            before = state.sinks[event.sink]
            after = _sink(before, event)
            settled = [number for number in _touched(before, after) if not after.wants(number)]
            return _without(replace(state, sinks={**state.sinks, event.sink: after}), settled)
        case _:
            return state


def _correlated(state: State, event: kube_events.Correlated) -> State:
    caches = Caches(
        known=remembered(state.caches.known, event.known),
        similar=remembered(state.caches.similar, event.similar),
        tokens=remembered(state.caches.tokens, event.tokens),
    )
    changed = replace(
        state,
        caches=caches,
        heard=state.heard + event.heard,
        suppressed=state.suppressed + event.suppressed,
        upto=event.upto,
    )
    if not event.posts:
        return changed
    numbered = dict(enumerate(event.posts, event.first_number))
    posts = state.posts.update(numbered) if state.sinks else state.posts
    return replace(changed, head=event.first_number + len(numbered) - 1, posts=posts)


def _sink(sink: Sink, event: kube_events.SinkEvent) -> Sink:
    match event:
        case kube_events.Delivered():
            return _settled(replace(sink, delivered=sink.delivered + event.count), event.upto)
        case kube_events.DeliveryFailed():
            return replace(sink, tries=event.tries, retry_at=event.retry_at, error=event.error)
        case kube_events.GivenUp():
            return _given_up(replace(sink, given_up=sink.given_up + event.count), event)
        case _:
            return replace(sink, retry_at=0)


def _given_up(sink: Sink, event: kube_events.GivenUp) -> Sink:
    if event.reason == "backlog":
        return replace(sink, gap_first=sink.gap_first or event.first, gap_last=event.last)
    return _settled(sink, event.last)


def _settled(sink: Sink, upto: int) -> Sink:
    """Move the cursor to `upto`; all posts up to there are settled. A gap that the cursor reaches is skipped."""
    moved = replace(sink, cursor=max(sink.cursor, upto), tries=0, retry_at=0, error="")
    if moved.gap_first and moved.cursor + 1 >= moved.gap_first:
        return replace(moved, cursor=max(moved.cursor, moved.gap_last), gap_first=0, gap_last=0)
    return moved


def _touched(before: Sink, after: Sink) -> Iterator[int]:
    """Yield the numbers of the posts that may have been settled between the two states."""
    yield from range(before.cursor + 1, after.cursor + 1)
    yield from range(max(before.gap_last + 1, after.gap_first), after.gap_last + 1)


def _without(state: State, numbers: Iterable[int]) -> State:
    """Drop the posts with these numbers, unless a sink is still waiting for them."""
    left = state.posts.mutate()
    for number in numbers:
        if not any(sink.wants(number) for sink in state.sinks.values()):
            left.pop(number, None)
    return replace(state, posts=left.finish())
